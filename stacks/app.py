"""The app: configuration and policies are read once, then three stacks hand each other typed values."""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aws_cdk as cdk
from cdk_nag import AwsSolutionsChecks

from stacks.config import Config, ConfigError
from stacks.config_load import load_config
from stacks.database import DatabaseStack
from stacks.jobs import JobsStack
from stacks.monitoring import MonitoringStack
from stopline.policy import Policy, load_policies


@dataclass(frozen=True)
class Deployment:
    """One app, not yet synthesized, and what a person should read before deploying it."""

    app: cdk.App
    arithmetic: tuple[str, ...]


def build(context: Mapping[str, Any], outdir: Path | None = None) -> Deployment:
    """The deployment that a CDK context describes. Raises ConfigError, PolicyError and CheckFailed."""
    app = cdk.App(context=dict(context), outdir=None if outdir is None else str(outdir), auto_synth=False)
    config = load_config(app.node)
    policies = chosen_policies(config)
    # CloudFormation hands a stack's tags on to everything in it, the trigger's provider included.
    common: dict[str, Any] = {
        "env": cdk.Environment(account=config.account, region=config.region),
        "tags": config.tags,
    }
    database = DatabaseStack(app, f"{config.prefix}Database", config=config, **common)
    jobs = JobsStack(
        app, f"{config.prefix}Jobs", config=config, database=database.connection, policies=policies, **common
    )
    monitoring = MonitoringStack(
        app,
        f"{config.prefix}Monitoring",
        config=config,
        policies=policies,
        jobs=jobs.watched,
        description="Stopline: what watches",
        termination_protection=config.protect,
        **common,
    )
    cdk.Validations.of(app).add_plugins(AwsSolutionsChecks(app))
    return Deployment(app, (*jobs.arithmetic, *monitoring.arithmetic))


def chosen_policies(config: Config) -> dict[str, Policy]:
    """The policies of the kinds to deploy. Raises ConfigError for a name without a folder, and PolicyError."""
    policies = load_policies(config.kinds_dir)
    if config.kinds is None:
        return policies
    for kind in config.kinds:
        if kind not in policies:
            near = difflib.get_close_matches(kind, policies, n=1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ConfigError(f"kinds = {list(config.kinds)!r}: {config.kinds_dir.name}/ has no kind {kind!r}{hint}")
    return {kind: policy for kind, policy in policies.items() if kind in config.kinds}
