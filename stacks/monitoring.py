"""Everything that watches: alarms, topics, the dashboard. Saved queries stand beside the logs that they read."""

from collections.abc import Mapping
from typing import Any

from aws_cdk import CfnOutput, Stack
from constructs import Construct

from stacks.config import Config
from stacks.constructs.alarms import Alarms
from stacks.constructs.dashboard import Dashboard
from stacks.constructs.topics import AlarmTopics
from stacks.metric_prices import price_lines
from stacks.watched import Watched
from stopline.policy import Policy


class MonitoringStack(Stack):
    """Watches what `jobs` names. Nothing of the other stacks depends on it. `arithmetic` is printed by synth."""

    arithmetic: tuple[str, ...]

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Config,
        policies: Mapping[str, Policy],
        jobs: Watched,
        **kwargs: Any,
    ) -> None:
        super().__init__(scope, construct_id, **kwargs)
        kinds = list(policies.values())
        queues = [queue.queue_name for queue in jobs.dead_letter_queues]
        self.topics = AlarmTopics(self, "Topics", email=config.alarm_email)
        self.alarms = Alarms(
            self,
            "Alarms",
            prefix=config.prefix,
            policies=kinds,
            topics=self.topics,
            dead_letter_queues=queues,
            cluster_identifier=jobs.cluster_identifier,
            max_connections=config.database.max_connections,
        )
        self.dashboard = Dashboard(
            self,
            "Dashboard",
            prefix=config.prefix,
            policies=kinds,
            alarms=self.alarms.of_deployment,
            functions={word: function.function_name for word, function in jobs.functions.items()},
            dead_letter_queues=queues,
            cluster_identifier=jobs.cluster_identifier,
        )
        self.arithmetic = tuple(price_lines(kinds))
        if self.arithmetic:
            CfnOutput(self, "OwnMetrics", value=self.arithmetic[-1], description="What kinds pay for their own metrics")
