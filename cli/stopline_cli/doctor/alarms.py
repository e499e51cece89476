"""Alarms: that they exist, act, and that somebody hears of it."""

from collections.abc import Iterator
from typing import Any

from stopline.migrate.findings import Finding, Level
from stopline_cli.doctor.account import Account
from stopline_cli.doctor.checks import finding
from stopline_cli.doctor.stacks import Stacks

_MOST_NAMES = 100
_PENDING = "PendingConfirmation"


def check_alarms(account: Account, stacks: Stacks) -> Iterator[Finding]:
    """AL-02, AL-04: an alarm without actions, or a topic without a reader, pages nobody."""
    names = [resource.id for resource in stacks.of("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")]
    composites: list[dict[str, Any]] = []
    metrics: list[dict[str, Any]] = []
    for start in range(0, len(names), _MOST_NAMES):
        answer = account.call(
            "cloudwatch",
            "DescribeAlarms",
            AlarmNames=names[start : start + _MOST_NAMES],
            AlarmTypes=["CompositeAlarm", "MetricAlarm"],
        )
        composites += answer.get("CompositeAlarms", [])
        metrics += answer.get("MetricAlarms", [])
    alarms = composites + metrics
    yield finding(
        "alarms",
        "exist",
        Level.FAIL,
        sorted(set(names) - {alarm["AlarmName"] for alarm in alarms}) or ([] if names else ["none"]),
        f"{len(alarms)} alarms",
        "deploy again: it was removed by hand",
    )
    yield finding(
        "alarms",
        "may act",
        Level.FAIL,
        [alarm["AlarmName"] for alarm in alarms if not alarm["ActionsEnabled"]],
        "actions are enabled",
        "enable its actions: somebody silenced it",
    )
    paging = [alarm for alarm in composites if alarm.get("AlarmActions")]
    yield finding(
        "alarms",
        "page",
        Level.FAIL,
        [] if paging else [alarm["AlarmName"] for alarm in composites] or ["no composite alarm"],
        "the composite has an action",
        "deploy again: its actions were removed by hand",
    )
    yield finding(
        "alarms",
        "are quiet",
        Level.WARN,
        [alarm["AlarmName"] for alarm in alarms if alarm["StateValue"] == "ALARM"],
        "none is on",
        "docs/operate.md has a section for each",
    )
    yield finding(
        "alarms",
        "have data",
        Level.WARN,
        [alarm["AlarmName"] for alarm in metrics if alarm["StateValue"] == "INSUFFICIENT_DATA"],
        "none waits for its first data",
        "right for some minutes after the first deploy; later, look whether the monitor runs",
    )
    yield from _readers(account, {action for alarm in alarms for action in alarm.get("AlarmActions", [])})


def _readers(account: Account, actions: set[str]) -> Iterator[Finding]:
    deaf = []
    for topic in sorted(action for action in actions if action.startswith("arn:") and ":sns:" in action):
        answer = account.pages("sns", "ListSubscriptionsByTopic", "Subscriptions", TopicArn=topic)
        if not any(subscription["SubscriptionArn"] != _PENDING for subscription in answer):
            deaf.append(topic.rpartition(":")[2])
    yield finding(
        "alarms",
        "reach somebody",
        Level.FAIL,
        deaf,
        "each topic has a confirmed subscription",
        "subscribe to the topic, or confirm the mail that AWS sent (alarm_email)",
    )
