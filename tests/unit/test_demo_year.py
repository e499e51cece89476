"""The demo's year: a source that returns what was stopped makes no call, and a poll that changes something is named."""

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest

from stopline.states import State
from stopline_cli.demo.cast import the_works
from stopline_cli.demo.scenario import INCIDENT
from stopline_cli.demo.scenes import year_lines
from stopline_cli.demo.year import differences, stopped_and_returned
from tests.support.demo_reality import as_expected, demo_expected, year_as_expected

GOOD = year_as_expected()


def test_a_year_as_expected_has_no_difference() -> None:
    assert differences(GOOD) == []


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"calls": 6}, {f"calls for {INCIDENT}"}),
        ({"before": 4}, {f"calls for {INCIDENT}"}),
        ({"calls_since": 1}, {"calls after the main scene"}),
        ({"state": State.PENDING}, {f"state of {INCIDENT}"}),
        ({"acknowledged": 2}, {"acknowledged"}),
        ({"said_again": 35}, {"acknowledged again"}),
    ],
)
def test_whatever_happened_in_the_year_is_named(changed: dict[str, Any], what: set[str]) -> None:
    assert {difference.what for difference in differences(replace(GOOD, **changed))} == what


@pytest.mark.parametrize(
    "changed",
    [{"created": 1}, {"held": 2}, {"claimed": 1}, {"changed": True}, {"open": 1}],
    ids=lambda one: next(iter(one)),
)
def test_a_poll_that_changed_something_is_named(changed: dict[str, Any]) -> None:
    first, second = GOOD.ticks
    found = replace(GOOD, ticks=(first, replace(second, **changed)))
    assert [difference.what for difference in differences(found)] == ["poll at minute 401"]


def test_the_source_returns_the_stopped_conversations_and_no_job_made_by_hand() -> None:
    found = as_expected(demo_expected())
    keys = [job.key for job in stopped_and_returned(the_works(), found.jobs)]
    assert keys == ["conversation:1008", "conversation:1012", "conversation:1019"]


def test_a_loop_would_have_called_525600_times_and_paid_for_it() -> None:
    assert (GOOD.polls, GOOD.uncapped, GOOD.bound.calls) == (525_600, Decimal(105_120), 5)
    assert GOOD.uncapped_as_recorded == 525_600 * GOOD.spent / 5
    assert replace(GOOD, calls=0).uncapped_as_recorded == 0
    shown = "\n".join(str(line) for line in year_lines(GOOD))
    assert "capped: 5 calls, " in shown
    assert "uncapped: 525,600 polls (every 1 min) x 1 call x $0.20 = $105,120.00" in shown
    assert "0 changed anything" in shown
