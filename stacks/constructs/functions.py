"""The one factory of functions: everything that must be the same for each of them is decided here."""

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import cast

from aws_cdk import Duration, RemovalPolicy, Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.config import Config
from stacks.connection import DatabaseConnection
from stacks.constructs.assets import function_asset, layer_asset
from stacks.constructs.roles import connect, function_role

MAX_EVENT_AGE = timedelta(seconds=60)
"""Lambda otherwise keeps an event that it could not start for six hours: the next tick comes within minutes."""

_LAYER = "Layer"


def stopline_function(
    scope: Construct,
    id: str,
    *,
    config: Config,
    database: DatabaseConnection,
    name: str,
    handler_dir: str,
    database_role: str,
    timeout: timedelta,
    memory_mb: int = 512,
    environment: Mapping[str, str] | None = None,
    kinds: Sequence[str] = (),
    more_database_roles: Sequence[str] = (),
    statements: Sequence[iam.PolicyStatement] = (),
    egress: str = "none",
    reserved: int | None = None,
) -> lambda_.Function:
    """A function from lambdas/<handler_dir>/ that reaches the database as `database_role`, with a role and log group of
    its own. `kinds` are those that it runs or migrates, `statements` what it may do beyond the database, and `egress`
    is where else it connects to."""
    stack = Stack.of(scope)
    log_group = _log_group(scope, f"{id}Logs", config)
    sign_in = connect(stack, database.resource_id, [database_role, *more_database_roles])
    return lambda_.Function(
        scope,
        id,
        description=f"Stopline: {name}",
        code=function_asset(handler_dir, config, kinds),
        handler="handler.handler",
        runtime=lambda_.Runtime(f"python{config.python}", lambda_.RuntimeFamily.PYTHON),
        architecture=lambda_.Architecture.ARM_64 if config.architecture == "arm64" else lambda_.Architecture.X86_64,
        layers=[_layer(stack, config)],
        timeout=Duration.seconds(math.ceil(timeout.total_seconds())),
        memory_size=memory_mb,
        role=function_role(scope, f"{id}Role", log_group=log_group, statements=[sign_in, *statements]),
        environment={
            "STOPLINE_SERVICE": config.prefix,
            **_database_variables(database, database_role),
            **(environment or {}),
        },
        vpc=database.vpc,
        vpc_subnets=database.subnets_by_egress[egress],
        security_groups=[database.client_security_group],
        log_group=log_group,
        logging_format=lambda_.LoggingFormat.JSON,
        retry_attempts=0,
        max_event_age=Duration.seconds(int(MAX_EVENT_AGE.total_seconds())),
        reserved_concurrent_executions=reserved,
    )


def _layer(stack: Stack, config: Config) -> lambda_.LayerVersion:
    """The layer, once in each stack: a version that another stack refers to could not be replaced."""
    present = stack.node.try_find_child(_LAYER)
    if present is not None:
        return cast(lambda_.LayerVersion, present)
    return lambda_.LayerVersion(
        stack,
        _LAYER,
        code=layer_asset(config),
        description="Stopline's library and the packages that it needs",
        compatible_runtimes=[lambda_.Runtime(f"python{config.python}", lambda_.RuntimeFamily.PYTHON)],
        compatible_architectures=[
            lambda_.Architecture.ARM_64 if config.architecture == "arm64" else lambda_.Architecture.X86_64
        ],
    )


def _log_group(scope: Construct, id: str, config: Config) -> logs.LogGroup:
    group = logs.LogGroup(scope, id, removal_policy=RemovalPolicy.DESTROY)
    cast(logs.CfnLogGroup, group.node.default_child).retention_in_days = config.log_retention_days
    return group


def _database_variables(database: DatabaseConnection, role: str) -> dict[str, str]:
    return {
        "STOPLINE_DB_HOST": database.host,
        "STOPLINE_DB_PORT": str(database.port),
        "STOPLINE_DB_NAME": database.name,
        "STOPLINE_DB_USER": role,
        "STOPLINE_DB_AUTH": "iam",
    }
