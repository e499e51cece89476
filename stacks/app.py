"""The app: configuration and policies are read once, then three stacks hand each other typed values."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from stacks.config import Config
from stacks.config_load import load_config
from stacks.database import DatabaseStack


def build_app(context: Mapping[str, Any], outdir: Path | None = None) -> cdk.App:
    """The app of one deployment, not yet synthesized. Raises ConfigError and PolicyError."""
    app = cdk.App(context=dict(context), outdir=None if outdir is None else str(outdir), auto_synth=False)
    config = load_config(app.node)
    for name, value in config.tags.items():
        cdk.Tags.of(app).add(name, value)
    DatabaseStack(app, f"{config.prefix}Database", config=config, env=environment(config))
    return app


def environment(config: Config) -> cdk.Environment:
    """Where the stacks go; what is None is the caller's own."""
    return cdk.Environment(account=config.account, region=config.region)
