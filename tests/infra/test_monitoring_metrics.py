"""Every metric that an alarm or a widget names is one that is really sent, with exactly its dimensions."""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from stacks.alarm_rules import RULES
from stacks.config import ROOT
from stacks.metric_prices import KIND_METRICS, TOTAL_METRICS, watching_price
from stopline.policy import Policy
from tests.infra.cloudwatch_rules import MetricKey, metric_key
from tests.infra.emitted import SERVICE, metrics_of, monitor_lines, poller_lines
from tests.infra.watching import Watching, shipped, watch, with_own_metrics
from tests.support.database import Database
from tests.support.synth import Synthesis

ONE_ATTEMPT = "def run(job):\n    return None\n"

SENT_BY_AWS: dict[tuple[str, str], set[str]] = {
    ("AWS/Lambda", "Duration"): {"FunctionName"},
    ("AWS/Lambda", "Errors"): {"FunctionName"},
    ("AWS/Lambda", "Throttles"): {"FunctionName"},
    ("AWS/RDS", "CPUUtilization"): {"DBClusterIdentifier", "Role"},
    ("AWS/RDS", "DatabaseConnections"): {"DBClusterIdentifier", "Role"},
    ("AWS/RDS", "ServerlessDatabaseCapacity"): {"DBClusterIdentifier"},
    ("AWS/SQS", "ApproximateNumberOfMessagesVisible"): {"QueueName"},
}
"""Metrics that AWS itself sends, with the names of the dimensions under which it does."""


def orphans(used: Iterable[MetricKey], emitted: Iterable[MetricKey]) -> set[MetricKey]:
    """Those of `used` that nobody sends."""
    sent = set(emitted)
    return {
        key for key in used if key not in sent and SENT_BY_AWS.get(key[:2]) != {dimension for dimension, _ in key[2]}
    }


def alarm_metrics(watching: Watching) -> set[MetricKey]:
    return {metric_key(alarm) for alarm in watching.resources("AWS::CloudWatch::Alarm").values()}


def widget_metrics(watching: Watching) -> set[MetricKey]:
    return {key for widget in watching.widgets for key in _metrics_of_widget(widget)}


def _metrics_of_widget(widget: dict[str, Any]) -> Iterator[MetricKey]:
    for line in widget["properties"].get("metrics", ()):
        namespace, name, *rest = [part for part in line if isinstance(part, str)]
        yield namespace, name, frozenset(zip(rest[::2], rest[1::2], strict=True))


@pytest.fixture
def emitted(db: Database, tmp_path: Path) -> set[MetricKey]:
    """What an empty deployment's monitor and an idle poller send."""
    sent = metrics_of(monitor_lines(db))
    zeros = {key[1]: values for key, values in sent.items() if key[1] not in ("Heartbeat", "OldestTransactionAge")}
    assert all(values == [0.0] for values in zeros.values())
    return {*sent, *metrics_of(poller_lines(db, tmp_path, ONE_ATTEMPT))}


def test_every_alarm_names_a_metric_that_an_all_zero_run_sends(emitted: set[MetricKey]) -> None:
    """AL-01: namespace, name and the exact set of dimensions, also when there is nothing to count."""
    assert orphans(alarm_metrics(shipped()), emitted) == set()


def test_every_widget_names_a_metric_that_an_all_zero_run_sends(emitted: set[MetricKey]) -> None:
    """AL-01"""
    shown = widget_metrics(shipped())
    assert len(shown) > 20
    assert orphans(shown, emitted) == set()


def test_every_total_that_the_monitor_sends_is_on_the_dashboard_or_alarmed(emitted: set[MetricKey]) -> None:
    """A number that nobody can see is paid for in vain."""
    assert emitted - widget_metrics(shipped()) - alarm_metrics(shipped()) == set()


def test_the_price_of_watching_counts_what_is_sent_and_built(emitted: set[MetricKey]) -> None:
    assert len(emitted) == TOTAL_METRICS
    assert len(shipped().resources("AWS::CloudWatch::Alarm")) == len(RULES)
    assert watching_price() == Decimal("11.50")
    assert "$11.50" in (ROOT / "docs" / "operate.md").read_text(encoding="utf-8")


def test_an_orphan_is_found(emitted: set[MetricKey]) -> None:
    """AL-01: another name, a dimension more, a dimension less, another service; also for AWS's own."""
    service = frozenset({("service", "Stopline")})
    wrong: set[MetricKey] = {
        ("Stopline", "Stucks", service),
        ("Stopline", "Stuck", frozenset()),
        ("Stopline", "Stuck", service | {("kind", "work")}),
        ("Stopline", "Stuck", frozenset({("service", "service_undefined")})),
        ("AWS/RDS", "CPUUtilization", frozenset({("DBInstanceIdentifier", "x")})),
        ("AWS/Lambda", "Error", frozenset({("FunctionName", "x")})),
    }
    right: set[MetricKey] = {("Stopline", "Stuck", service)}
    assert orphans(wrong | right, emitted) == wrong


def test_the_functions_of_a_deployment_send_under_its_own_name(
    synthesized: Callable[[str], Synthesis], db: Database
) -> None:
    """AL-01: two deployments in one account do not mix their numbers, and the alarms look where the functions write."""
    templates = synthesized("default")
    variables = [
        resource["Properties"]["Environment"]["Variables"]
        for resource in templates.stack("Jobs")["Resources"].values()
        if resource["Type"] == "AWS::Lambda::Function" and "STOPLINE_DB_USER" in str(resource)
    ]
    assert len(variables) >= 4
    assert {each["STOPLINE_SERVICE"] for each in variables} == {SERVICE["STOPLINE_SERVICE"]}
    alarms = [
        each["Properties"]
        for each in templates.stack("Monitoring")["Resources"].values()
        if each["Type"] == "AWS::CloudWatch::Alarm"
    ]
    own = {metric_key(each) for each in alarms if each["Namespace"] == "Stopline"}
    assert len(own) == 8
    assert orphans(own, metrics_of(monitor_lines(db))) == set()


def test_a_deployment_with_another_prefix_watches_its_own_metrics_only(policies: dict[str, Policy]) -> None:
    other = watch(policies, prefix="Staging")
    used = alarm_metrics(other) | widget_metrics(other)
    assert {dict(key[2])["service"] for key in used if key[0] == "Stopline"} == {"Staging"}
    names = {each["AlarmName"] for each in other.resources("AWS::CloudWatch::Alarm").values()}
    assert all(each.startswith("Staging-") for each in names)
    assert all(f'ALARM("{each}")' not in shipped().paging_rule for each in names)


def test_a_kinds_own_alarms_name_metrics_that_an_idle_kind_sends(db: Database, policies: dict[str, Policy]) -> None:
    """AL-01 for kinds with own_metrics; and the number that the price is made of."""
    for name in policies:
        db.policy(name, own_metrics=True)
    sent = metrics_of(monitor_lines(db))
    used = alarm_metrics(watch(with_own_metrics(policies)))
    assert {key for key in used if dict(key[2]).get("kind")}
    assert orphans(used, sent) == set()
    for name in policies:
        assert len([key for key in sent if ("kind", name) in key[2]]) == KIND_METRICS
