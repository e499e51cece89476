"""The jobs stack alone over a database stack, for kinds and settings that no example has: a second or two each."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import aws_cdk as cdk

from stacks.config import ROOT, Config
from stacks.config_load import read_config
from stacks.database import DatabaseStack
from stacks.jobs import JobsStack
from stopline.policy import Policy, parse_policy
from tests.infra.resolved import resolved
from tests.support.synth import Template

PLAIN = """
owner = "tests"
description = "Does nothing."
idempotent = true
[run]
timeout = "30s"
"""


def config(**changes: Any) -> Config:
    """The default configuration with other values."""
    return replace(read_config({"config": "examples/default.json"}), **changes)


def jobs_template(policies: Mapping[str, Policy], folder: Path, **changes: Any) -> Template:
    """The jobs stack's template, worked out."""
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context, outdir=str(folder), auto_synth=False)
    settings = config(**changes)
    database = DatabaseStack(app, "StoplineDatabase", config=settings)
    JobsStack(app, "StoplineJobs", config=settings, database=database.connection, policies=policies)
    template: Template = app.synth().get_stack_by_name("StoplineJobs").template
    return resolved(template)


def kinds(folder: Path, texts: Mapping[str, str]) -> dict[str, Policy]:
    """Kinds with these policies, each with a handler that does nothing, in `folder`."""
    for name, text in texts.items():
        (folder / name).mkdir(parents=True)
        (folder / name / "policy.toml").write_text(text)
        (folder / name / "handler.py").write_text("def run(job):\n    return None\n")
    return {name: parse_policy(name, text, f"{name}/policy.toml") for name, text in texts.items()}
