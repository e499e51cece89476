"""The monitoring stack alone, over stand-ins of the functions that it watches: a second instead of a whole synth."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import aws_cdk as cdk
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.config import ROOT
from stacks.config_load import load_config
from stacks.monitoring import MonitoringStack
from stacks.watched import Watched
from stopline.policy import Policy, load_policies
from tests.infra.cloudwatch_rules import Alarm


@dataclass(frozen=True)
class Watching:
    """The stack's template, and what synth prints of it."""

    template: dict[str, Any]
    arithmetic: tuple[str, ...]

    def resources(self, type_name: str) -> dict[str, dict[str, Any]]:
        """Properties by logical id."""
        return {
            logical_id: resource["Properties"]
            for logical_id, resource in self.template["Resources"].items()
            if resource["Type"] == type_name
        }

    def alarms(self, extra: int = 2) -> list[Alarm]:
        """Every metric alarm, off, looking `extra` periods further back than it judges."""
        return [Alarm.from_template(each, extra) for each in self.resources("AWS::CloudWatch::Alarm").values()]

    @property
    def widgets(self) -> list[dict[str, Any]]:
        """The widgets of the dashboard; what CloudFormation fills in stands as <token>."""
        (dashboard,) = self.resources("AWS::CloudWatch::Dashboard").values()
        body = dashboard["DashboardBody"]
        parts = body["Fn::Join"][1] if isinstance(body, dict) else [body]
        found = json.loads("".join(part if isinstance(part, str) else "<token>" for part in parts))["widgets"]
        assert isinstance(found, list)
        return found

    @property
    def paging_rule(self) -> str:
        """The rule of the one composite alarm."""
        (composite,) = self.resources("AWS::CloudWatch::CompositeAlarm").values()
        return str(composite["AlarmRule"])


@cache
def shipped() -> Watching:
    """The stack as the shipped kinds and the default configuration make it."""
    return watch(load_policies(ROOT / "lambdas" / "jobs"))


def watch(policies: Mapping[str, Policy], *, cluster: bool = True, **context: Any) -> Watching:
    """Synthesizes the monitoring stack for these kinds; `context` is configuration on top of the defaults."""
    app = cdk.App(context={"config": "examples/default.json", **context})
    config = load_config(app.node)
    watched = _stand_ins(cdk.Stack(app, "Jobs"), policies, cluster=cluster)
    stack = MonitoringStack(app, f"{config.prefix}Monitoring", config=config, policies=policies, jobs=watched)
    return Watching(app.synth().get_stack_artifact(stack.artifact_id).template, stack.arithmetic)


def with_own_metrics(policies: Mapping[str, Policy]) -> dict[str, Policy]:
    """The same kinds, asking for metrics of their own."""
    return {name: replace(policy, alarms=replace(policy.alarms, own_metrics=True)) for name, policy in policies.items()}


def _stand_ins(scope: Construct, policies: Mapping[str, Policy], *, cluster: bool) -> Watched:
    names = ["sweeper", "monitor", "migrator", *(f"poller {kind}" for kind in policies)]
    functions = {
        name: lambda_.Function(
            scope,
            name.title().replace(" ", ""),
            runtime=lambda_.Runtime.PYTHON_3_14,
            handler="index.handler",
            code=lambda_.Code.from_inline("def handler(event, context): pass"),
            log_group=logs.LogGroup(scope, f"{name.title().replace(' ', '')}Logs"),
        )
        for name in names
    }
    queue = sqs.Queue(scope, "DeadLetters")
    return Watched(functions, (queue,), "stopline", "stopline-cluster" if cluster else None)
