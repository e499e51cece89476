"""What starts the functions: one group of schedules, one role for all of them, one queue for events that were dropped.

A schedule never retries: the next one comes within minutes, and a burst after an outage helps nobody.
"""

import json
from datetime import timedelta

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_sqs as sqs
from constructs import Construct

from stacks.constructs.acknowledged import acknowledge
from stacks.constructs.functions import MAX_EVENT_AGE

SCHEDULED_TIME = "<aws.scheduler.scheduled-time>"
"""EventBridge Scheduler puts the time that it meant to fire at in its place."""


class Schedules(Construct):
    """Schedules of this deployment, each in `entries`. `queue` holds events that could not be handed over."""

    def __init__(self, scope: Construct, id: str) -> None:
        super().__init__(scope, id)
        self.entries: list[scheduler.CfnSchedule] = []
        stack = Stack.of(self)
        self.group = scheduler.CfnScheduleGroup(self, "Group", name=stack.stack_name)
        self.queue = sqs.Queue(
            self,
            "DeadLetters",
            enforce_ssl=True,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            retention_period=Duration.days(14),
            removal_policy=RemovalPolicy.DESTROY,
        )
        acknowledge(
            self.queue, "AwsSolutions-SQS3", "It is the schedules' dead-letter queue; cdk-nag knows SQS's own only."
        )
        self._invoke = iam.PolicyStatement(sid="Invoke", actions=["lambda:InvokeFunction"])
        self.role = iam.Role(
            self,
            "Role",
            description="Starts Stopline's functions on their schedules",
            assumed_by=iam.ServicePrincipal(
                "scheduler.amazonaws.com",
                conditions={"StringEquals": {"aws:SourceAccount": stack.account, "aws:SourceArn": self.group.attr_arn}},
            ),
            inline_policies={
                "own": iam.PolicyDocument(
                    statements=[
                        self._invoke,
                        iam.PolicyStatement(
                            sid="DeadLetters", actions=["sqs:SendMessage"], resources=[self.queue.queue_arn]
                        ),
                    ]
                )
            },
        )

    def every(self, id: str, function: lambda_.Function, interval: timedelta) -> None:
        """Start `function` with an empty event every `interval`, which is whole minutes."""
        self._schedule(id, function, rate(interval), None, {})

    def occurrence(self, id: str, function: lambda_.Function, kind: str, expression: str, timezone: str) -> None:
        """Let the poller `function` enqueue a job of a periodic kind, keyed by the time that it was scheduled for."""
        event = {"enqueue": kind, "scheduled_for": SCHEDULED_TIME}
        zone = timezone if expression.startswith("cron") else None
        self._schedule(id, function, expression, zone, event)

    def _schedule(
        self, id: str, function: lambda_.Function, expression: str, timezone: str | None, event: dict[str, str]
    ) -> None:
        if function.function_arn not in self._invoke.resources:
            self._invoke.add_resources(function.function_arn)
        schedule = scheduler.CfnSchedule(
            self,
            id,
            group_name=self.group.ref,
            state="ENABLED",
            schedule_expression=expression,
            schedule_expression_timezone=timezone,
            flexible_time_window=scheduler.CfnSchedule.FlexibleTimeWindowProperty(mode="OFF"),
            target=scheduler.CfnSchedule.TargetProperty(
                arn=function.function_arn,
                role_arn=self.role.role_arn,
                input=json.dumps(event),
                retry_policy=scheduler.CfnSchedule.RetryPolicyProperty(
                    maximum_retry_attempts=0, maximum_event_age_in_seconds=int(MAX_EVENT_AGE.total_seconds())
                ),
                dead_letter_config=scheduler.CfnSchedule.DeadLetterConfigProperty(arn=self.queue.queue_arn),
            ),
        )
        self.entries.append(schedule)


def rate(interval: timedelta) -> str:
    """The schedule expression of an interval. EventBridge refuses `rate(1 minutes)`, and no linter knows it."""
    minutes, rest = divmod(interval, timedelta(minutes=1))
    if rest or minutes < 1:
        raise ValueError(f"a schedule's interval must be whole minutes, not {interval}")
    return f"rate({minutes} minute{'' if minutes == 1 else 's'})"
