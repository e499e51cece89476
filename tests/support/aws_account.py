"""A deployment in a pretended AWS account: moto's services, with what the stacks make of them.

CloudFormation, composite alarms and the database's function are answered here, where moto knows none of ours.
"""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import MagicMock

import boto3
from botocore.loaders import Loader
from botocore.session import get_session
from moto import mock_aws

from stopline_cli.doctor.account import Account

REGION = "eu-central-1"
ROLE = "arn:aws:iam::123456789012:role/scheduler"
FUNCTIONS = {
    "Stopline-Poller": {"STOPLINE_DB_HOST": "db", "STOPLINE_KINDS": "work"},
    "Stopline-Migrator": {"STOPLINE_DB_HOST": "db", "STOPLINE_SQL_DIR": "sql", "STOPLINE_INSTALLATION": "cluster-1"},
    "Stopline-Bootstrap": {"STOPLINE_DB_HOST": "db", "STOPLINE_SQL_DIR": "sql"},
    "Stopline-TriggerProvider": {},
}

_LOADER = Loader(include_default_search_paths=True)
"""Reads the services' descriptions once for all tests."""


class Deployment:
    """What the doctor finds in the account; every service can be changed before it looks."""

    def __init__(self) -> None:
        core = get_session()
        core.register_component("data_loader", _LOADER)
        self.session = boto3.Session("a", "b", region_name=REGION, botocore_session=core)
        self._clients: dict[str, Any] = {}
        self.findings: list[dict[str, Any]] = []
        self.invoked: list[dict[str, Any]] = []
        self.function_error: str | None = None
        self.resources: dict[str, list[tuple[str, str, str]]] = {"Database": [], "Jobs": [], "Monitoring": []}
        self.answer("cloudformation", "ListStackResources", self._stack)
        self.answer("lambda", "Invoke", self._invoke)
        self._functions()
        self._schedules()
        self._alarms()

    def client(self, service: str) -> Any:
        if service not in self._clients:
            self._clients[service] = self.session.client(service)
        return self._clients[service]

    @property
    def account(self) -> Account:
        return Account(self.session)

    def answer(self, service: str, operation: str, answers: Any) -> None:
        """Answers an operation before it is sent; `answers` takes the request's parameters."""

        def reply(params: dict[str, Any], **_: Any) -> Any:
            return answers(params)

        self.session.events.register(f"before-call.{service}.{operation}", reply)

    def refuse(self, service: str, operation: str, code: str = "AccessDeniedException") -> None:
        """The operation is denied, or fails with `code`."""
        told = {"Error": {"Code": code, "Message": f"User: ada is not authorized to perform: {operation}"}}
        # Ours come first: the last that was registered would otherwise never be asked.
        self.session.events.register_first(
            f"before-call.{service}.{operation}", lambda **_: (MagicMock(status_code=403), told)
        )

    def _stack(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        name = params["body"]["StackName"].removeprefix("Stopline")
        if name not in self.resources:
            error = {"Code": "ValidationError", "Message": "Stack with that id does not exist"}
            return MagicMock(status_code=400), {"Error": error}
        listed = [
            {
                "LogicalResourceId": logical,
                "PhysicalResourceId": physical,
                "ResourceType": kind,
                "ResourceStatus": "CREATE_COMPLETE",
            }
            for logical, physical, kind in self.resources[name]
        ]
        half = len(listed) // 2
        if "NextToken" not in params["body"] and half:
            return MagicMock(status_code=200), {"StackResourceSummaries": listed[:half], "NextToken": "more"}
        return MagicMock(status_code=200), {"StackResourceSummaries": listed[half:]}

    def _invoke(self, params: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        assert "Stopline-Migrator" in params["url_path"]
        event = json.loads(params["body"])
        self.invoked.append(event)
        if self.function_error is not None:
            body = {"errorType": "MigrationFailed", "errorMessage": self.function_error}
            return MagicMock(status_code=200), {"FunctionError": "Unhandled", "Payload": io.BytesIO(_json(body))}
        adopted = {"changed": True, "identity": "cluster-1", "installation": "i", "first_job": 7}
        answer = adopted if "adopt" in event else {"findings": self.findings}
        return MagicMock(status_code=200), {"Payload": io.BytesIO(_json(answer))}

    def _functions(self) -> None:
        iam, lambda_ = self.client("iam"), self.client("lambda")
        role = iam.create_role(RoleName="r", AssumeRolePolicyDocument="{}")["Role"]["Arn"]
        for name, environment in FUNCTIONS.items():
            lambda_.create_function(
                FunctionName=name,
                Runtime="python3.13",
                Role=role,
                Handler="handler.handler",
                Code={"ZipFile": b"no code"},
                Environment={"Variables": environment},
            )
            lambda_.put_function_event_invoke_config(FunctionName=name, MaximumRetryAttempts=0)
            self.resources["Jobs"].append((name.replace("-", ""), name, "AWS::Lambda::Function"))

    def _schedules(self) -> None:
        queue = self.client("sqs").create_queue(QueueName="dead")["QueueUrl"]
        scheduler = self.client("scheduler")
        scheduler.create_schedule_group(Name="StoplineJobs")
        self.resources["Jobs"] += [
            ("DeadLetters", queue, "AWS::SQS::Queue"),
            ("Group", "StoplineJobs", "AWS::Scheduler::ScheduleGroup"),
            ("EveryWork", "every-work", "AWS::Scheduler::Schedule"),
        ]
        self.schedule("create")

    def schedule(self, verb: str = "update", *, state: str = "ENABLED", **target: Any) -> None:
        """The one schedule, made or changed."""
        getattr(self.client("scheduler"), f"{verb}_schedule")(
            Name="every-work",
            GroupName="StoplineJobs",
            ScheduleExpression="rate(1 minute)",
            FlexibleTimeWindow={"Mode": "OFF"},
            State=state,
            Target={
                "Arn": f"arn:aws:lambda:{REGION}:123456789012:function:Stopline-Poller",
                "RoleArn": ROLE,
                "RetryPolicy": {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60},
                "DeadLetterConfig": {"Arn": f"arn:aws:sqs:{REGION}:123456789012:dead"},
                **target,
            },
        )

    def _alarms(self) -> None:
        sns = self.client("sns")
        self.topic = sns.create_topic(Name="page")["TopicArn"]
        sns.subscribe(TopicArn=self.topic, Protocol="sqs", Endpoint=f"arn:aws:sqs:{REGION}:123456789012:pager")
        self.notice()
        self.page()
        self.session.events.register("after-call.cloudwatch.DescribeAlarms", self._add_composite)
        self.resources["Monitoring"] += [
            ("Stuck", "stuck", "AWS::CloudWatch::Alarm"),
            ("Page", "page", "AWS::CloudWatch::CompositeAlarm"),
        ]

    def notice(self, *topics: str) -> None:
        """The one alarm on a metric, made or changed."""
        cloudwatch = self.client("cloudwatch")
        cloudwatch.put_metric_alarm(
            AlarmName="stuck", MetricName="Stuck", Namespace="Stopline", Statistic="Maximum", Period=60,
            EvaluationPeriods=1, Threshold=1, ComparisonOperator="GreaterThanOrEqualToThreshold",
            AlarmActions=list(topics),
        )  # fmt: skip
        cloudwatch.set_alarm_state(AlarmName="stuck", StateValue="OK", StateReason="none")

    def page(self, *, actions: list[str] | None = None, enabled: bool = True) -> None:
        """The composite alarm, made or changed."""
        self._composite = {
            "AlarmName": "page",
            "AlarmRule": "ALARM(stuck)",
            "ActionsEnabled": enabled,
            "AlarmActions": [self.topic] if actions is None else actions,
            "StateValue": "OK",
        }

    def _add_composite(self, parsed: dict[str, Any], **_: Any) -> None:
        parsed["CompositeAlarms"] = [self._composite]


@contextmanager
def deployment() -> Iterator[Deployment]:
    """A deployment that is well."""
    with mock_aws(config={"lambda": {"use_docker": False}}):
        yield Deployment()


def _json(value: object) -> bytes:
    return json.dumps(value).encode()
