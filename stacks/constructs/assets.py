"""The layer's and the functions' folders as CDK assets. The folders are built before (`bundles.py`), so that a package
that cannot be had is one plain error and not a failure inside of the CDK; the CDK hashes their contents."""

from collections.abc import Sequence
from pathlib import Path

from aws_cdk import aws_lambda as lambda_

from stacks.config import Config
from stacks.constructs.bundles import build_function, build_layer
from stacks.constructs.machine import Machine

_NOT_UPLOADED = ["**/__pycache__", "**/*.pyc"]
"""Running a function from its built folder leaves these there."""


def machine_of(config: Config) -> Machine:
    """What the deployment's functions run on."""
    return Machine(config.architecture, config.python)


def layer_asset(config: Config) -> lambda_.Code:
    """The layer of every function. Raises PackagesError."""
    return _asset(build_layer(machine_of(config)))


def function_asset(handler: str, config: Config, kinds: Sequence[str] = ()) -> lambda_.Code:
    """The code of a function whose handler is lambdas/<handler>/; `kinds` are those that it runs or migrates."""
    return _asset(build_function(handler, machine_of(config), config.kinds_dir, kinds=kinds))


def _asset(folder: Path) -> lambda_.Code:
    return lambda_.Code.from_asset(str(folder), exclude=_NOT_UPLOADED)
