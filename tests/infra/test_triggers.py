"""Bootstrap and migration at deploy time: their order, what makes them run again, and what they may do."""

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from stacks.config import Config
from stacks.config_load import read_config
from stacks.constructs import bundles
from stacks.constructs.triggers import DatabaseSetup
from stacks.database import DatabaseStack
from tests.support.synth import JOBS_DIR, ROOT, Synthesis, Template
from tests.support.templates import depends_on, of_type

TRIGGER = "Custom::Trigger"
VERSION = "AWS::Lambda::Version"


def triggers(template: Template) -> dict[str, str]:
    """Logical ids of the triggers: `bootstrap` (if there is one) and `migrate`."""
    names = {"Bootstrapped": "bootstrap", "Migrate": "migrate"}
    return {word: name for name in of_type(template, TRIGGER) for part, word in names.items() if f"Setup{part}" in name}


def test_roles_come_before_the_schema_and_the_schema_before_whatever_runs_on_it(
    synthesized: Callable[[str], Synthesis],
) -> None:
    template = synthesized("default").stack("Jobs")
    found = triggers(template)
    assert found["bootstrap"] in depends_on(template, found["migrate"])
    runs = [
        name for name in of_type(template, "AWS::Lambda::Function") if name.startswith(("Poller", "Sweeper", "Mon"))
    ]
    schedules = list(of_type(template, "AWS::Scheduler::Schedule"))
    assert len(runs) == 4
    assert len(schedules) >= len(runs)
    for name in runs + schedules:
        assert found["migrate"] in depends_on(template, name), name


def test_the_migrator_connects_as_the_owner_and_only_the_bootstrap_as_master(
    synthesized: Callable[[str], Synthesis],
) -> None:
    template = synthesized("default").stack("Jobs")
    for name, role in of_type(template, "AWS::IAM::Role").items():
        assert ("stopline_master" in json.dumps(role)) == name.startswith("SetupBootstrap"), name
        assert ("/stopline_owner" in json.dumps(role)) == name.startswith("SetupMigrator"), name
    users = {
        name: each["Properties"]["Environment"]["Variables"]["STOPLINE_DB_USER"]
        for name, each in of_type(template, "AWS::Lambda::Function").items()
        if name.startswith("Setup")
    }
    assert sorted(users.values()) == ["stopline_master", "stopline_owner"]


def test_an_existing_database_is_bootstrapped_as_the_master_that_was_named(
    synthesized: Callable[[str], Synthesis],
) -> None:
    template = synthesized("existing-database").stack("Jobs")
    assert "bootstrap" in triggers(template)
    assert "/stopline_admin" in json.dumps(of_type(template, "AWS::IAM::Role"))


def test_the_providers_role_calls_the_two_functions_and_writes_its_own_log(
    synthesized: Callable[[str], Synthesis],
) -> None:
    template = synthesized("default").stack("Jobs")
    (role,) = (
        each["Properties"]
        for name, each in of_type(template, "AWS::IAM::Role").items()
        if name.startswith("AWSCDKTrigger")
    )
    assert "ManagedPolicyArns" not in role
    statements = [each for policy in role["Policies"] for each in policy["PolicyDocument"]["Statement"]]
    assert {action for each in statements for action in each["Action"]} == {
        "lambda:InvokeFunction",
        "logs:CreateLogStream",
        "logs:PutLogEvents",
    }
    called = [json.dumps(each["Resource"]) for each in statements if "lambda:InvokeFunction" in each["Action"]]
    assert ["Bootstrap" in each or "Migrator" in each for each in called] == [True, True]
    (provider,) = (
        each["Properties"]
        for name, each in of_type(template, "AWS::Lambda::Function").items()
        if name.startswith("AWSCDKTrigger")
    )
    group = template["Resources"][provider["LoggingConfig"]["LogGroup"]["Ref"]]
    assert group["Properties"]["RetentionInDays"] == 30


@pytest.fixture
def copy_of_the_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """sql/ and the kinds, to be changed by a test."""
    shutil.copytree(ROOT / "sql", tmp_path / "sql")
    shutil.copytree(JOBS_DIR, tmp_path / "jobs", ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(bundles, "SQL", tmp_path / "sql")
    return tmp_path


def versions(sources: Path, **changes: Any) -> dict[str, str]:
    """The logical ids of both functions' versions in a synth of `sources`: another id runs the trigger again."""
    config = dataclasses.replace(read_config({"egress": "nat"}), kinds_dir=sources / "jobs")
    template = setup_template(config, **changes)
    return {"bootstrap" if "Bootstrap" in name else "migrate": name for name in of_type(template, VERSION)}


def setup_template(config: Config, kinds: tuple[str, ...] = ("accounting_export", "close_conversation")) -> Template:
    context = json.loads((ROOT / "cdk.json").read_text())["context"]
    app = cdk.App(context=context, auto_synth=False)
    database = DatabaseStack(app, "Database", config=config)
    stack = cdk.Stack(app, "Jobs")
    DatabaseSetup(stack, "Setup", config=config, database=database.connection, kinds=kinds)
    artifact = app.synth().get_stack_by_name("Jobs")
    template: Template = json.loads(Path(artifact.template_full_path).read_text())
    return template


def test_the_migrator_runs_again_when_and_only_when_what_it_brings_changed(copy_of_the_sources: Path) -> None:
    """MI-02, MI-06: a deploy of the same files changes no property, so CloudFormation calls nothing."""
    sources = copy_of_the_sources
    before = versions(sources)
    assert versions(sources) == before

    with (sources / "jobs" / "close_conversation" / "source.sql").open("a") as file:
        file.write("-- another source\n")
    source = versions(sources)
    policy_file = sources / "jobs" / "accounting_export" / "policy.toml"
    policy_file.write_text(policy_file.read_text().replace("max_attempts = 4", "max_attempts = 3"))
    policy = versions(sources)
    (sources / "sql" / "migrations" / "0099_more.sql").write_text("select 1;\n")
    migration = versions(sources)
    with (sources / "sql" / "engine" / "30_claim.sql").open("a") as file:
        file.write("-- another engine\n")
    engine = versions(sources)

    seen = [before, source, policy, migration, engine]
    assert len({each["migrate"] for each in seen}) == len(seen)
    assert {each["bootstrap"] for each in seen} == {before["bootstrap"]}, "the bootstrap brings none of these"


def test_the_bootstrap_runs_again_when_its_sql_changed(copy_of_the_sources: Path) -> None:
    before = versions(copy_of_the_sources)
    with (copy_of_the_sources / "sql" / "bootstrap.sql").open("a") as file:
        file.write("-- another role\n")
    assert versions(copy_of_the_sources)["bootstrap"] != before["bootstrap"]


def test_a_handlers_change_that_ships_no_sql_does_not_migrate(copy_of_the_sources: Path) -> None:
    before = versions(copy_of_the_sources)
    with (copy_of_the_sources / "jobs" / "close_conversation" / "handler.py").open("a") as file:
        file.write("# another handler\n")
    assert versions(copy_of_the_sources) == before


def test_a_database_that_was_bootstrapped_by_hand_gets_no_function_that_could_be_its_master() -> None:
    config = read_config({"config": "examples/existing-database.json", "database.master": None})
    template = setup_template(config)
    assert set(triggers(template)) == {"migrate"}
    assert not [name for name in of_type(template, "AWS::Lambda::Function") if "Bootstrap" in name]
