"""CloudWatch's documented way of judging an alarm, for tests: M out of N, missing data, composite rules.

Source: "Configuring how CloudWatch alarms treat missing data" in the CloudWatch user guide,
https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/alarms-and-missing-data.html (read November 2026), with
its sections "How alarm state is evaluated when data is missing" and "Avoiding premature transitions to alarm state".

CloudWatch reads more periods than N, the evaluation range, and judges the N newest that have data. Only when the whole
range has fewer than N is the rest filled in by the missing-data rule. The length of the range is not published; the
guide's examples use 5 for N = 3. So `Alarm` takes the number of extra periods, and tests run with more than one.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["OK", "ALARM", "INSUFFICIENT_DATA"]
Treatment = Literal["missing", "ignore", "breaching", "notBreaching"]
MetricKey = tuple[str, str, frozenset[tuple[str, str]]]
"""Namespace, name and the exact set of dimensions."""

EXTRA_IN_THE_GUIDE = 2


def judge(points: Sequence[bool | None], m: int, n: int, missing: Treatment, current: State) -> State:
    """The state after one evaluation. `points` is the evaluation range, oldest first: breaching, not, or no data."""
    real = [point for point in points if point is not None][-n:]
    breaching = sum(real)
    if breaching >= m:
        return "ALARM"
    if len(real) == n or missing == "notBreaching":
        return "OK"
    if missing == "breaching":
        return "ALARM" if breaching + n - len(real) >= m else "OK"
    if not real:
        return current if missing == "ignore" else "INSUFFICIENT_DATA"
    if False in real:
        return "OK"
    # Only breaching points, fewer than M. The guide keeps the state under "ignore" (its row `- - - X -`).
    if missing == "ignore":
        return current
    age_of_oldest = len(points) - list(points).index(True)
    return "ALARM" if age_of_oldest >= m else "OK"


class Metrics:
    """Values by metric and minute, as CloudWatch would have them after reading EMF lines."""

    def __init__(self) -> None:
        self._values: dict[MetricKey, dict[int, list[float]]] = defaultdict(lambda: defaultdict(list))

    def put(self, key: MetricKey, minute: int, *values: float) -> None:
        """Values of one metric, as a service of AWS would publish them."""
        self._values[key][minute].extend(values)

    def put_emf(self, line: Mapping[str, Any], minute: int) -> None:
        """Every metric of one EMF line, under each of its dimension sets."""
        for key, values in emf_metrics(line).items():
            self.put(key, minute, *values)

    @property
    def keys(self) -> set[MetricKey]:
        """Every metric that has ever had a value."""
        return set(self._values)

    def statistic(self, key: MetricKey, name: str, minutes: range) -> float | None:
        """A statistic over a period; None if it has no data."""
        values = [value for minute in minutes for value in self._values.get(key, {}).get(minute, ())]
        if not values:
            return None
        return _STATISTICS[name](values)


def emf_metrics(line: Mapping[str, Any]) -> dict[MetricKey, list[float]]:
    """What one EMF line publishes, by namespace, name and exact dimensions."""
    found: dict[MetricKey, list[float]] = {}
    for directive in line["_aws"]["CloudWatchMetrics"]:
        for names in directive["Dimensions"]:
            dimensions = frozenset((name, str(line[name])) for name in names)
            for metric in directive["Metrics"]:
                value = line[metric["Name"]]
                values = value if isinstance(value, list) else [value]
                found[directive["Namespace"], metric["Name"], dimensions] = [float(each) for each in values]
    return found


@dataclass
class Alarm:
    """A metric alarm and its state. `history` has one state for each evaluation."""

    name: str
    metric: MetricKey
    statistic: str
    comparison: str
    threshold: float
    m: int
    n: int
    period_s: int
    missing: Treatment
    extra: int = EXTRA_IN_THE_GUIDE
    state: State = "INSUFFICIENT_DATA"
    history: list[State] = field(default_factory=list)

    @classmethod
    def from_template(cls, properties: Mapping[str, Any], extra: int = EXTRA_IN_THE_GUIDE) -> "Alarm":
        """From the properties of an AWS::CloudWatch::Alarm. Dimension values that are references stay as text."""
        return cls(
            name=properties["AlarmName"],
            metric=metric_key(properties),
            statistic=properties["Statistic"],
            comparison=properties["ComparisonOperator"],
            threshold=properties["Threshold"],
            m=properties.get("DatapointsToAlarm", properties["EvaluationPeriods"]),
            n=properties["EvaluationPeriods"],
            period_s=properties["Period"],
            missing=properties.get("TreatMissingData", "missing"),
            extra=extra,
        )

    def evaluate(self, metrics: Metrics, minute: int) -> State:
        """Judges the range that ends with `minute`, the newest whole minute."""
        length = self.period_s // 60
        ends = [minute + 1 - back * length for back in reversed(range(self.n + self.extra))]
        values = [metrics.statistic(self.metric, self.statistic, range(end - length, end)) for end in ends]
        points = [None if value is None else self._breaches(value) for value in values]
        self.state = judge(points, self.m, self.n, self.missing, self.state)
        self.history.append(self.state)
        return self.state

    def _breaches(self, value: float) -> bool:
        return {
            "GreaterThanOrEqualToThreshold": value >= self.threshold,
            "GreaterThanThreshold": value > self.threshold,
            "LessThanThreshold": value < self.threshold,
            "LessThanOrEqualToThreshold": value <= self.threshold,
        }[self.comparison]


def metric_key(properties: Mapping[str, Any]) -> MetricKey:
    """The metric of an alarm's properties."""
    dimensions = frozenset((each["Name"], str(each["Value"])) for each in properties.get("Dimensions", ()))
    return properties["Namespace"], properties["MetricName"], dimensions


def composite(rule: str, states: Mapping[str, State]) -> State:
    """The state of a composite alarm whose rule is ALARM("name") terms joined by OR. A name that is unknown raises."""
    terms = re.split(r"\s+OR\s+", rule.strip())
    names = [match[1] for term in terms if (match := re.fullmatch(r'ALARM\("?([^"()]+)"?\)', term))]
    if len(names) != len(terms):
        raise ValueError(f"not only ALARM(...) terms joined by OR: {rule}")
    return "ALARM" if any(states[name] == "ALARM" for name in names) else "OK"


def alarming(alarms: Iterable[Alarm]) -> set[str]:
    """The names of those that are on."""
    return {alarm.name for alarm in alarms if alarm.state == "ALARM"}


_STATISTICS: dict[str, Callable[[list[float]], float]] = {
    "Maximum": max,
    "Minimum": min,
    "Sum": sum,
    "Average": lambda values: sum(values) / len(values),
    "SampleCount": len,
}
