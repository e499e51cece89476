"""The demo's outage: when the breaker must let calls through, and what is named when it does otherwise."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from stopline.policy import Policy, overlay
from stopline_cli.demo.breaker import CLOSED, EXTENDED, OPENED, cooldown, plan
from stopline_cli.demo.outage import differences
from stopline_cli.demo.scenario import EXPORT, OUTAGE, OUTAGE_BATCHES
from stopline_cli.demo.scenes import outage_lines
from stopline_cli.errors import CommandError
from tests.support.demo_reality import demo_policies, outage_as_expected

GOOD = outage_as_expected()
HOURS_2 = timedelta(hours=2)


def exports(**sections: Any) -> Policy:
    return overlay(demo_policies()[EXPORT], sections)


def test_a_probe_follows_each_pause_and_the_first_that_goes_well_ends_them() -> None:
    must = plan(exports(), 7, HOURS_2)
    assert must.calls == {0: 7, 5: 1, 10: 1, 15: 1, 25: 1, 45: 1, 80: 1, 115: 1, 150: 1, 155: 6}
    assert [pause / timedelta(minutes=1) for pause in must.pauses] == [1, 2, 4, 8, 16, 30, 30, 30]
    assert must.events == (OPENED, *[EXTENDED] * 7, CLOSED)
    assert (must.wasted, must.total, must.paused) == (14, 21, 22)
    assert must.uncapped == 7 * 24


@pytest.mark.parametrize("hours", [1, 2, 4, 6])
def test_the_calls_of_an_outage_are_bounded_by_its_pauses(hours: int) -> None:
    """However long it is: one call for each job, then one for each pause, and the longest pause is half an hour."""
    must = plan(exports(), 20, timedelta(hours=hours))
    assert must.wasted <= 20 + 5 + 2 * hours
    assert must.total == must.wasted + 20


def test_a_pause_that_ends_just_when_the_poller_looks_is_probed_at_the_next_look() -> None:
    must = plan(exports(breaker={"cooldown": "5m", "max_cooldown": "5m"}), 7, timedelta(minutes=21))
    assert list(must.calls) == [0, 10, 20, 30, 35]


def test_pauses_double_up_to_their_cap() -> None:
    policy = exports()
    assert cooldown(policy, 4) == timedelta(minutes=16)
    assert cooldown(policy, 5) == cooldown(policy, 10**6) == timedelta(minutes=30)


@pytest.mark.parametrize(("jobs", "attempts"), [(4, 4), (7, 2), (5, 3)])
def test_an_outage_that_too_few_jobs_could_probe_is_refused(jobs: int, attempts: int) -> None:
    """A probe is never a job's last attempt; with none left the kind would wait for a person."""
    policy = exports(limits={"max_attempts": attempts, "max_crashes": 1})
    with pytest.raises(CommandError, match="too few"):
        plan(policy, jobs, HOURS_2)


def test_an_outage_as_expected_has_no_difference() -> None:
    assert differences(GOOD) == []
    assert len(OUTAGE_BATCHES) == GOOD.expected.jobs
    assert GOOD.expected.down == OUTAGE


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"calls": {**GOOD.calls, 20: 1}}, {"calls by minute", "calls while nothing worked"}),
        ({"calls": {**GOOD.calls, 155: 5, 160: 1}}, {"calls by minute"}),
        ({"taken": 8}, {"calls that the connector carried out"}),
        ({"attempts": 22}, {"attempts"}),
        ({"states": {"abandoned": 1, "succeeded": 6}}, {"states"}),
        ({"events": GOOD.events[:-1]}, {"events"}),
        ({"paused": 21}, {"polls that found the kind paused"}),
    ],
)
def test_whatever_the_breaker_does_otherwise_is_named(changed: dict[str, Any], what: set[str]) -> None:
    assert {difference.what for difference in differences(replace(GOOD, **changed))} == what


def test_calls_are_shown_beside_those_of_a_loop() -> None:
    shown = "\n".join(str(line) for line in outage_lines(GOOD))
    assert "calls while nothing worked: 14 (7 jobs x 1 call + 7 probes that failed = 14 calls in 2 h" in shown
    assert "7 jobs x 24 polls (every 5 min) = 168 calls" in shown
