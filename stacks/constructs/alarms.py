"""Builds what `stacks/alarm_rules.py` declares, and the one composite alarm that pages."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from constructs import Construct

from stacks.alarm_rules import (
    DATABASE_CONNECTIONS_SHARE,
    METRICS,
    RULES,
    AlarmRule,
    Comparison,
    Missing,
    Source,
    kind_rules,
)
from stacks.constructs.metrics import metric, service, writer
from stacks.constructs.topics import AlarmTopics
from stopline.policy import Policy

MOST_CHILDREN = 100
MOST_CHARACTERS = 10_240
"""What CloudWatch takes as the rule of one composite alarm."""

_NAMESPACES = {
    Source.TOTALS: METRICS,
    Source.KIND: METRICS,
    Source.DEAD_LETTERS: "AWS/SQS",
    Source.WRITER: "AWS/RDS",
}
_COMPARISONS = {
    Comparison.AT_LEAST: cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
    Comparison.ABOVE: cloudwatch.ComparisonOperator.GREATER_THAN_THRESHOLD,
    Comparison.BELOW: cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
}
_MISSING = {
    Missing.BREACHING: cloudwatch.TreatMissingData.BREACHING,
    Missing.NOT_BREACHING: cloudwatch.TreatMissingData.NOT_BREACHING,
    Missing.IGNORE: cloudwatch.TreatMissingData.IGNORE,
}


class Alarms(Construct):
    """All alarms. `of_deployment` starts with the composite; `of_kinds` are those that kinds asked for.

    `dead_letter_queues` are names. Without a `cluster_identifier` the database's own metrics are not watched.
    """

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        prefix: str,
        policies: Iterable[Policy],
        topics: AlarmTopics,
        dead_letter_queues: Sequence[str],
        cluster_identifier: str | None,
        max_connections: int,
    ) -> None:
        super().__init__(scope, id)
        self._prefix = prefix
        self._notice = actions.SnsAction(topics.notices)
        self._max_connections = max_connections
        singles: list[cloudwatch.Alarm] = []
        paging: dict[str, cloudwatch.Alarm] = {}
        for rule in RULES:
            for suffix, dimensions in _places(rule.source, prefix, dead_letter_queues, cluster_identifier):
                alarm = self._alarm(rule, suffix, dimensions)
                singles.append(alarm)
                if rule.pages:
                    paging[self._name(rule, suffix)] = alarm
        self.of_kinds = [
            self._alarm(rule, policy.name, {"kind": policy.name, **service(prefix)})
            for policy in policies
            if policy.alarms.own_metrics
            for rule in kind_rules(policy)
        ]
        self.of_deployment: list[cloudwatch.IAlarm] = [self._composite(paging, topics), *singles]

    def _name(self, rule: AlarmRule, suffix: str) -> str:
        return "-".join(filter(None, (self._prefix, rule.name.replace("_", "-"), suffix)))

    def _alarm(self, rule: AlarmRule, suffix: str, dimensions: Mapping[str, str]) -> cloudwatch.Alarm:
        alarm = cloudwatch.Alarm(
            self,
            f"{rule.name}_{suffix}" if suffix else rule.name,
            alarm_name=self._name(rule, suffix),
            alarm_description=description(rule),
            metric=metric(_NAMESPACES[rule.source], rule.metric, dimensions, rule.statistic, period_s=rule.period_s),
            comparison_operator=_COMPARISONS[rule.comparison],
            threshold=self._threshold(rule),
            datapoints_to_alarm=rule.datapoints,
            evaluation_periods=rule.periods,
            treat_missing_data=_MISSING[rule.missing],
        )
        alarm.add_alarm_action(self._notice)
        alarm.add_ok_action(self._notice)
        return alarm

    def _threshold(self, rule: AlarmRule) -> float:
        if rule.threshold is not None:
            return rule.threshold
        return int(self._max_connections * DATABASE_CONNECTIONS_SHARE)

    def _composite(self, children: Mapping[str, cloudwatch.Alarm], topics: AlarmTopics) -> cloudwatch.CompositeAlarm:
        composite = cloudwatch.CompositeAlarm(
            self,
            "page",
            composite_alarm_name=f"{self._prefix}-page",
            alarm_description="Somebody must look now: the alarms that are on say why. Runbook: docs/operate.md",
            alarm_rule=cloudwatch.AlarmRule.from_string(paging_rule(list(children))),
        )
        # The rule names its children as text, so nothing else says that they come first.
        composite.node.add_dependency(*children.values())
        page = actions.SnsAction(topics.pages)
        composite.add_alarm_action(page)
        composite.add_ok_action(page)
        return composite


def description(rule: AlarmRule) -> str:
    """What whoever is woken reads: the meaning, the first thing to run, where the rest stands."""
    run = rule.first_query if rule.first_query.startswith("stopline ") else f'the saved query "{rule.first_query}"'
    return f"{rule.meaning} First: {run}. Then: {rule.runbook}"


def paging_rule(names: Sequence[str]) -> str:
    """The composite's rule: on while any of these is on. Raises ValueError above CloudWatch's limits."""
    rule = " OR ".join(f'ALARM("{name}")' for name in names)
    if len(names) > MOST_CHILDREN or len(rule) > MOST_CHARACTERS:
        raise ValueError(
            f"the paging alarm: {len(names)} alarms and {len(rule):,} characters; CloudWatch takes at most "
            f"{MOST_CHILDREN} and {MOST_CHARACTERS:,}. Let fewer rules in stacks/alarm_rules.py page"
        )
    return rule


def _places(
    source: Source, prefix: str, dead_letter_queues: Sequence[str], cluster_identifier: str | None
) -> Iterator[tuple[str, dict[str, str]]]:
    """A suffix for the name and the dimensions of each metric that a source stands for."""
    if source == Source.TOTALS:
        yield "", service(prefix)
    elif source == Source.DEAD_LETTERS:
        for number, queue in enumerate(dead_letter_queues, start=1):
            yield str(number) if len(dead_letter_queues) > 1 else "", {"QueueName": queue}
    elif cluster_identifier is not None:
        yield "", writer(cluster_identifier)
