"""A reality that is not as it had to be is named, and ends the demo with status 1."""

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from typer.testing import CliRunner

from stopline.states import Outcome, State, StopReason
from stopline_cli.commands import demo as command
from stopline_cli.demo.compare import differences
from stopline_cli.demo.found import Found
from stopline_cli.main import app
from tests.support.demo_reality import as_expected, demo_expected, job_of, performed, spoiled, with_totals

EXPECTED = demo_expected()
GOOD = as_expected(EXPECTED)
POISON = "conversation:1008"
EXPORTED = "batch:south-w48"
UNRESOLVED = "batch:fells-w48"


def named(found: Found) -> set[tuple[str, str]]:
    return {(difference.job, difference.what) for difference in differences(EXPECTED, found)}


def test_a_reality_as_expected_has_no_difference() -> None:
    assert differences(EXPECTED, GOOD) == []


@pytest.mark.parametrize(
    ("key", "changed", "what"),
    [
        (POISON, {"state": State.PENDING, "stop_reason": None}, "state"),
        (POISON, {"stop_reason": StopReason.ELAPSED_LIMIT}, "stop reason"),
        (POISON, {"calls": 6}, "calls at the receiver"),
        (POISON, {"taken": 4}, "calls that the receiver carried out"),
        (EXPORTED, {"effects": ("demo-1", "demo-1")}, "stored under the reference"),
        (EXPORTED, {"effect_key": "another"}, "stored under the reference"),
        (EXPORTED, {"checks": ()}, "answers of the receiver"),
        (EXPORTED, {"lookups": 2}, "questions at the receiver"),
        (UNRESOLVED, {"checks": job_of(GOOD, UNRESOLVED).checks[:4]}, "answers of the receiver"),
        (UNRESOLVED, {"next_check_at": "2026-01-05T09:00:00+00:00"}, "next question"),
        (UNRESOLVED, {"review_by": None}, "review by"),
        (UNRESOLVED, {"checks": (replace(job_of(GOOD, UNRESOLVED).checks[0], detail=""),) * 5}, "reason of question 1"),
    ],
)
def test_each_field_that_differs_is_named_with_its_job(key: str, changed: dict[str, Any], what: str) -> None:
    assert (key, what) in named(spoiled(GOOD, key, **changed))


def test_one_attempt_too_many_is_named() -> None:
    """The incident itself: a poison conversation that is called once more than its cap allows."""
    attempts = job_of(GOOD, POISON).attempts
    again = spoiled(GOOD, POISON, attempts=(*attempts, attempts[-1]), calls=6, taken=6)
    assert named(again) == {
        (POISON, "attempts"),
        (POISON, "calls at the receiver"),
        (POISON, "calls that the receiver carried out"),
    }


def test_an_attempt_without_its_reason_or_with_another_price_is_named() -> None:
    first, *rest = job_of(GOOD, POISON).attempts
    blank = replace(first, error="", error_class="", usd=Decimal("0.20"))
    found = spoiled(GOOD, POISON, attempts=(blank, *rest))
    assert named(found) == {(POISON, "reason of attempt 1"), (POISON, "price of attempt 1")}


def test_a_crash_that_is_recorded_as_something_else_is_named() -> None:
    first, *rest = job_of(GOOD, "conversation:1022").attempts
    found = spoiled(GOOD, "conversation:1022", attempts=(replace(first, outcome=Outcome.TIMEOUT), *rest))
    (difference,) = differences(EXPECTED, found)
    assert str(difference) == ("conversation:1022: attempts: expected crashed, succeeded, found timeout, succeeded")


def test_jobs_that_are_missing_or_that_nobody_expected_are_named() -> None:
    lost = with_totals(replace(GOOD, jobs=GOOD.jobs[1:]))
    assert named(lost) == {(GOOD.jobs[0].key, "jobs")}
    more = with_totals(replace(GOOD, jobs=(*GOOD.jobs, replace(GOOD.jobs[0], key="conversation:9"))))
    assert named(more) == {("conversation:9", "jobs")}


def test_calls_and_money_that_no_job_accounts_for_are_named() -> None:
    kind = "close_conversation"
    assert named(replace(GOOD, calls={**GOOD.calls, kind: 99})) == {(kind, "calls at the receiver")}
    assert named(replace(GOOD, lookups={**GOOD.lookups, kind: 1})) == {(kind, "questions at the receiver")}
    assert named(replace(GOOD, spend={**GOOD.spend, kind: Decimal(9)})) == {(kind, "money in the ledger")}
    assert named(replace(GOOD, doubled=("attempt 1 of job 7",))) == {("attempt 1 of job 7", "requests on the wire")}


@pytest.mark.parametrize("words", [["--json"], []])
def test_a_wrong_reality_is_printed_by_name_and_is_exit_status_1(
    words: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wrong = spoiled(GOOD, POISON, calls=6)
    monkeypatch.setattr(command, "perform", lambda *_: performed(wrong, list(differences(EXPECTED, wrong))))
    done = CliRunner().invoke(app, ["demo", *words])
    assert done.exit_code == 1
    assert f"NOT AS EXPECTED: {POISON}: calls at the receiver: expected 5, found 6" in done.output
    if words:
        last = json.loads(done.stdout.splitlines()[-1])
        assert (last["met"], len(last["differences"])) == (False, 1)


def test_a_right_reality_is_exit_status_0(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "perform", lambda *_: performed(GOOD, []))
    done = CliRunner().invoke(app, ["demo"])
    assert done.exit_code == 0
    assert "All 36 jobs ended as their faults and the policies say they must." in done.output
