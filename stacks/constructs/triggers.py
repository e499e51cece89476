"""What a deploy does to the database before anything runs on it: roles once, then the schema, engine and policies.

Each is a function that the CDK's trigger provider calls while CloudFormation waits. As installed (aws_cdk.triggers
2.275), the provider
- calls on create and on update, and a property changes only when the function's version does: its code, layer or
  environment. A deploy without such a change calls nothing. A rollback calls the old version again;
- keeps the physical id that it gave at creation, and answers a delete without calling: no data is ever dropped;
- answers FAILED with the function's error text, which fails the deploy. When its own wait ends first, the SDK inside
  calls again, twice: so a function ends well before the wait does, and that before the provider's own 15 minutes.
"""

from collections.abc import Sequence
from datetime import timedelta
from typing import cast

from aws_cdk import CfnResource, Duration, Stack, triggers
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct, IConstruct, IDependable

from stacks.config import Config
from stacks.connection import DatabaseConnection
from stacks.constructs.functions import stopline_function

MIGRATOR_TIMEOUT = timedelta(minutes=14)
BOOTSTRAP_TIMEOUT = timedelta(minutes=3)
WAITS_LONGER = timedelta(seconds=30)

_PROVIDER = "AWSCDK.TriggerCustomResourceProviderCustomResourceProvider"


class DatabaseSetup(Construct):
    """Bootstraps and migrates the database at deploy time. `migrator` is watched like every other function."""

    migrator: lambda_.Function
    bootstrap: lambda_.Function | None

    def __init__(
        self, scope: Construct, construct_id: str, *, config: Config, database: DatabaseConnection, kinds: Sequence[str]
    ) -> None:
        super().__init__(scope, construct_id)
        self.bootstrap = None if database.master is None else self._bootstrap(config, database, database.master)
        self.migrator = stopline_function(
            self,
            "Migrator",
            config=config,
            database=database,
            name="migrator",
            handler_dir="migrator",
            database_role="stopline_owner",
            timeout=MIGRATOR_TIMEOUT,
            environment={
                "STOPLINE_INSTALLATION": database.identity,
                "STOPLINE_SQL_DIR": "/var/task/sql",
                "STOPLINE_JOBS_DIR": "/var/task/jobs",
            },
            kinds=kinds,
        )
        self._migrated = _trigger(self, "Migrate", self.migrator, MIGRATOR_TIMEOUT, after=database.writer)
        if self.bootstrap is not None:
            done = _trigger(self, "Bootstrapped", self.bootstrap, BOOTSTRAP_TIMEOUT, after=database.writer)
            done.execute_before(self._migrated)
        _own_logs(Stack.of(self), config)

    def before(self, *constructs: Construct) -> None:
        """Let these be made or changed only after the database is migrated."""
        self._migrated.execute_before(*constructs)

    def _bootstrap(self, config: Config, database: DatabaseConnection, master: str) -> lambda_.Function:
        return stopline_function(
            self,
            "Bootstrap",
            config=config,
            database=database,
            name="bootstrap",
            handler_dir="bootstrap",
            database_role=master,
            timeout=BOOTSTRAP_TIMEOUT,
            memory_mb=256,
            environment={"STOPLINE_SQL_DIR": "/var/task/sql"},
        )


def _trigger(
    scope: Construct, construct_id: str, function: lambda_.Function, timeout: timedelta, *, after: IDependable
) -> triggers.Trigger:
    trigger = triggers.Trigger(
        scope,
        construct_id,
        handler=function,
        timeout=Duration.seconds(int((timeout + WAITS_LONGER).total_seconds())),
        invocation_type=triggers.InvocationType.REQUEST_RESPONSE,
    )
    trigger.node.add_dependency(after)
    return trigger


def _own_logs(stack: Stack, config: Config) -> None:
    """Give the provider a log group that ends, and a role without a managed policy; it offers neither by itself."""
    group = logs.CfnLogGroup(stack, "TriggerProviderLogs", retention_in_days=config.log_retention_days)
    provider = stack.node.find_child(_PROVIDER)
    handler, role = _resource(provider, "Handler"), _resource(provider, "Role")
    handler.add_property_override("LoggingConfig", {"LogGroup": group.ref})
    role.add_property_deletion_override("ManagedPolicyArns")
    statement = {
        "Effect": "Allow",
        "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
        "Resource": group.attr_arn,
    }
    document = {"Version": "2012-10-17", "Statement": [statement]}
    role.add_property_override("Policies.1", {"PolicyName": "Logs", "PolicyDocument": document})


def _resource(provider: IConstruct, name: str) -> CfnResource:
    return cast(CfnResource, provider.node.find_child(name))
