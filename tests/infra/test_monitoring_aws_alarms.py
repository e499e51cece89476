"""The alarms on metrics of AWS's own: values as the services publish them, judged by CloudWatch's rules."""

from collections.abc import Sequence

import pytest

from tests.infra.cloudwatch_rules import Alarm, Metrics
from tests.infra.watching import shipped


@pytest.fixture(params=[2, 5], ids=["range of N+2", "range of N+5"])
def alarms(request: pytest.FixtureRequest) -> dict[str, Alarm]:
    return {alarm.name.removeprefix("Stopline-"): alarm for alarm in shipped().alarms(request.param)}


def played(alarm: Alarm, values: Sequence[float | None]) -> list[bool]:
    """Whether the alarm is on after each minute; None is a minute without data."""
    metrics = Metrics()
    states = []
    for minute, value in enumerate(values):
        if value is not None:
            metrics.put(alarm.metric, minute, value)
        states.append(alarm.evaluate(metrics, minute) == "ALARM")
    return states


def test_one_dead_letter_is_told_until_the_queue_is_empty(alarms: dict[str, Alarm]) -> None:
    """AL-04: a schedule that may not start its function. SQS reports nothing before, zeros for a while after."""
    states = played(alarms["schedule-dead-letters"], [None] * 60 + [1.0] * 30 + [0.0] * 30 + [None] * 60)
    assert not any(states[:60])
    assert all(states[60:90])
    assert not any(states[95:])


def test_a_queue_that_falls_silent_at_once_is_taken_for_empty(alarms: dict[str, Alarm]) -> None:
    """AL-02: missing data is good here; a purged queue that nobody uses may report nothing at all."""
    states = played(alarms["schedule-dead-letters"], [1.0] * 10 + [None] * 60)
    assert states[9]
    assert not states[-1]


def test_a_busy_database_is_told_after_ten_minutes_and_a_peak_is_not(alarms: dict[str, Alarm]) -> None:
    states = played(alarms["database-cpu"], [20.0] * 20 + [99.0] * 9 + [20.0] * 20 + [95.0] * 20 + [20.0] * 20)
    assert states.index(True) == 20 + 9 + 20 + 9
    assert not states[-1]


def test_connections_are_told_before_they_run_out(alarms: dict[str, Alarm]) -> None:
    """The default database takes 756; four fifths of them are 604."""
    states = played(alarms["database-connections"], [600.0] * 10 + [604.0] * 5 + [100.0] * 5)
    assert states.index(True) == 12
    assert not states[-1]


@pytest.mark.parametrize("name", ["database-cpu", "database-connections"])
def test_a_database_that_reports_nothing_turns_no_alarm_on_or_off(alarms: dict[str, Alarm], name: str) -> None:
    """AL-02: monitor-silent tells of an outage; these keep what they knew."""
    alarm = alarms[name]
    low, high = alarm.threshold - 1, alarm.threshold
    assert not any(played(alarm, [low] * 20 + [None] * 60))
    assert all(played(alarm, [high] * 20 + [None] * 60)[20:])
