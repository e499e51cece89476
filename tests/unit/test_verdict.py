"""One bug, five bugs, or one thing upstream: one line about a batch of stopped jobs."""

from typing import Any

import pytest

from stopline_cli.verdict import verdict


def group(jobs: int, fingerprint: str | None, kind: str = "close", stop: str = "attempts_exhausted") -> dict[str, Any]:
    return {"kind": kind, "stop_reason": stop, "fingerprint": fingerprint, "jobs": jobs}


@pytest.mark.parametrize(
    ("groups", "line"),
    [
        ([], "No job is abandoned."),
        ([group(1, "a")], "One job of kind close is abandoned."),
        (
            [group(30, "a"), group(11, "a", "export"), group(2, "b")],
            "41 of 43 jobs of 2 kinds share one fingerprint: one thing upstream of these kinds. "
            "The other 2 jobs: 1 fault.",
        ),
        (
            [group(30, "a"), group(11, "a", stop="elapsed_limit")],
            "All 41 jobs of 1 kind share one fingerprint: one bug, or one thing that only close uses.",
        ),
        (
            [group(10, "a"), group(9, "b"), group(8, "c"), group(8, "d", "export"), group(8, "e", "export")],
            "43 jobs of 2 kinds have 5 faults, and the largest is of 10 jobs: 5 things to look at, not one.",
        ),
        (
            [group(1, "a"), group(1, "b")],
            "2 jobs of 1 kind have 2 faults, and each has one of its own: 2 things to look at, not one.",
        ),
        (
            [group(9, None, stop="deadline_passed"), group(1, None, stop="reopen_limit")],
            "9 of 10 jobs of 1 kind share one stop reason: no error stopped them, a limit did. "
            "The other 1 job: 1 fault.",
        ),
    ],
)
def test_a_batch_is_told_apart_by_its_faults(groups: list[dict[str, Any]], line: str) -> None:
    assert verdict(groups).line == line


def test_the_figures_of_the_line_stand_beside_it() -> None:
    found = verdict([group(30, "a"), group(11, "a", "export"), group(2, "b", "audit")])
    assert (found.jobs, found.kinds, found.faults, found.largest) == (43, 3, 2, 41)
    assert found.largest_kinds == ["close", "export"]
