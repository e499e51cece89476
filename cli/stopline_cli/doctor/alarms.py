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
    deaf = [topic for topic in _topics(alarms) if not _is_read(account, topic)]
    pages = _topics(composites)
    subscribe = "subscribe to the topic, or confirm the mail that AWS sent (alarm_email)"
    yield finding(
        "alarms",
        "wake somebody",
        Level.FAIL,
        [_topic_name(topic) for topic in deaf if topic in pages],
        "the page's topic has a confirmed subscription",
        subscribe,
    )
    yield finding(
        "alarms",
        "are noticed",
        Level.WARN,
        [_topic_name(topic) for topic in deaf if topic not in pages],
        "each other topic has a confirmed subscription",
        subscribe,
    )


def _topics(alarms: list[dict[str, Any]]) -> list[str]:
    actions = {action for alarm in alarms for action in alarm.get("AlarmActions", [])}
    return sorted(action for action in actions if ":sns:" in action)


def _topic_name(topic: str) -> str:
    return topic.rpartition(":")[2]


def _is_read(account: Account, topic: str) -> bool:
    answer = account.pages("sns", "ListSubscriptionsByTopic", "Subscriptions", TopicArn=topic)
    return any(subscription["SubscriptionArn"] != _PENDING for subscription in answer)
