"""The evaluator of CloudWatch's alarm rules against the examples of its own user guide."""

from typing import Any

import pytest

from tests.infra.cloudwatch_rules import Alarm, MetricKey, Metrics, State, Treatment, composite, emf_metrics, judge

KEEPS = "Retain current state"
TREATMENTS: tuple[Treatment, ...] = ("missing", "ignore", "breaching", "notBreaching")
NOTHING = "INSUFFICIENT_DATA"

THREE_OF_THREE = {
    "0 - X - X": ("OK", "OK", "OK", "OK"),
    "0 - - - -": ("OK", "OK", "OK", "OK"),
    "- - - - -": (NOTHING, KEEPS, "ALARM", "OK"),
    "0 X X - X": ("ALARM", "ALARM", "ALARM", "ALARM"),
    "- - X - -": ("ALARM", KEEPS, "ALARM", "OK"),
}
TWO_OF_THREE = {
    "0 - X - X": ("ALARM", "ALARM", "ALARM", "ALARM"),
    "0 0 X 0 X": ("ALARM", "ALARM", "ALARM", "ALARM"),
    "0 - X - -": ("OK", "OK", "ALARM", "OK"),
    "- - - - 0": ("OK", "OK", "ALARM", "OK"),
    "- - - X -": ("ALARM", KEEPS, "ALARM", "OK"),
}
EXAMPLES = [
    (m, row, treatment, expected)
    for m, table in ((3, THREE_OF_THREE), (2, TWO_OF_THREE))
    for row, states in table.items()
    for treatment, expected in zip(TREATMENTS, states, strict=True)
]
KEY: MetricKey = ("Stopline", "Due", frozenset({("service", "stopline")}))


def points(row: str) -> list[bool | None]:
    return [{"0": False, "X": True, "-": None}[mark] for mark in row.split()]


@pytest.mark.parametrize("current", ["OK", "ALARM", NOTHING])
@pytest.mark.parametrize(("m", "row", "treatment", "expected"), EXAMPLES)
def test_every_row_of_the_guides_two_tables_gives_its_state(
    m: int, row: str, treatment: Treatment, expected: str, current: State
) -> None:
    assert judge(points(row), m, 3, treatment, current) == (current if expected == KEEPS else expected)


@pytest.mark.parametrize("row", ["- - - - X", "- - - X -", "- - - X 0", "- - X - 0"])
def test_the_guides_intermittent_rows_do_not_alarm_too_early(row: str) -> None:
    """ "Avoiding premature transitions to alarm state": the next point may be good."""
    assert judge(points(row), 3, 3, "missing", "OK") == "OK"


def test_a_point_that_left_the_evaluation_range_is_forgotten() -> None:
    """The guide on its second row: at the next evaluation the good point is out of range, and missing data breaches."""
    alarm = Alarm("a", KEY, "Sum", "LessThanThreshold", 1, m=3, n=3, period_s=60, missing="breaching")
    metrics = Metrics()
    metrics.put(KEY, 0, 1)
    assert [alarm.evaluate(metrics, minute) for minute in range(3, 6)] == ["OK", "OK", "ALARM"]


def test_periods_longer_than_a_minute_are_summed_up_before_they_are_judged() -> None:
    alarm = Alarm("a", KEY, "Maximum", "GreaterThanThreshold", 2, m=1, n=1, period_s=300, missing="notBreaching")
    metrics = Metrics()
    metrics.put(KEY, 2, 3)
    metrics.put(KEY, 7, 1)
    assert [alarm.evaluate(metrics, minute) for minute in (4, 9)] == ["ALARM", "OK"]
    assert [metrics.statistic(KEY, name, range(10)) for name in ("Minimum", "Sum", "Average", "SampleCount")] == [
        1,
        4,
        2,
        2,
    ]


def test_an_emf_line_is_read_by_its_exact_dimension_sets() -> None:
    line: dict[str, Any] = {
        "_aws": {
            "CloudWatchMetrics": [
                {
                    "Namespace": "Stopline",
                    "Dimensions": [["service"], ["kind", "service"]],
                    "Metrics": [{"Name": "Due"}],
                }
            ]
        },
        "service": "stopline",
        "kind": "email",
        "Due": [5.0],
    }
    assert emf_metrics(line) == {
        KEY: [5.0],
        ("Stopline", "Due", frozenset({("service", "stopline"), ("kind", "email")})): [5.0],
    }


def test_a_composite_is_on_while_one_of_its_children_is_and_knows_all_of_them() -> None:
    rule = 'ALARM("a") OR ALARM("b")'
    assert composite(rule, {"a": "OK", "b": "ALARM"}) == "ALARM"
    assert composite(rule, {"a": "INSUFFICIENT_DATA", "b": "OK"}) == "OK"
    with pytest.raises(KeyError):
        composite(rule, {"a": "OK"})
    with pytest.raises(ValueError, match="joined by OR"):
        composite('ALARM("a") AND ALARM("b")', {})
