"""The jobs stack of the default deployment: what starts, how often, with what, and what happens when it fails."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stacks.constructs.bundles import build_function, build_layer
from stopline import settings
from stopline.policy import Policy
from tests.infra.built import ARM
from tests.infra.resolved import REGION, name_of, resolved, resources
from tests.support.synth import JOBS_DIR, Synthesis, Template

EVERY = {
    "PollerCloseConversation": "rate(1 minute)",
    "PollerAccountingExport": "rate(5 minutes)",
    "Sweeper": "rate(1 minute)",
    "Monitor": "rate(1 minute)",
}
AT_DEPLOY = {"SetupMigrator", "SetupBootstrap"}
SETTINGS: dict[str, Callable[[dict[str, str]], Any]] = {
    "PollerCloseConversation": settings.poller_settings,
    "PollerAccountingExport": settings.poller_settings,
    "Sweeper": settings.sweeper_settings,
    "Monitor": settings.monitor_settings,
    "SetupMigrator": settings.migrator_settings,
    "SetupBootstrap": settings.bootstrap_settings,
}


@pytest.fixture(scope="module")
def raw(synthesized: Callable[[str], Synthesis]) -> Template:
    """The template as it was written."""
    return synthesized("default").stack("Jobs")


@pytest.fixture(scope="module")
def template(raw: Template) -> Template:
    """The template, worked out."""
    return resolved(raw)


@pytest.fixture(scope="module")
def functions(template: Template) -> dict[str, dict[str, Any]]:
    """Our functions, without the CDK's provider of triggers."""
    found = resources(template, "AWS::Lambda::Function")
    return {name: properties for name, properties in found.items() if properties["Handler"] == "handler.handler"}


def test_there_is_a_function_for_every_job_and_no_other(functions: dict[str, dict[str, Any]]) -> None:
    """A poller for each kind, the sweeper, the monitor, and two that a deploy starts."""
    assert set(functions) == set(EVERY) | AT_DEPLOY


def test_every_schedule_is_enabled_exact_and_never_retries(template: Template) -> None:
    """AL-04, CL-13: no flexible window, no second try, no event older than a minute; what was dropped is kept."""
    found = resources(template, "AWS::Scheduler::Schedule")
    expressions = {_function_of(schedule): schedule["ScheduleExpression"] for schedule in found.values()}
    assert expressions == EVERY
    for schedule in found.values():
        target = schedule["Target"]
        assert schedule["State"] == "ENABLED"
        assert schedule["FlexibleTimeWindow"] == {"Mode": "OFF"}
        assert target["RetryPolicy"] == {"MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60}
        assert target["DeadLetterConfig"]["Arn"].endswith(":SchedulesDeadLetters")
        assert target["RoleArn"].endswith("role/SchedulesRole")
        assert json.loads(target["Input"]) == {}


def test_every_scheduled_function_may_be_invoked_by_the_schedules_role(template: Template) -> None:
    """AL-04: the right names the very function that the schedule targets."""
    role = resources(template, "AWS::IAM::Role")["SchedulesRole"]
    (statement,) = [each for each in role["Policies"][0]["PolicyDocument"]["Statement"] if each["Sid"] == "Invoke"]
    targets = [each["Target"]["Arn"] for each in resources(template, "AWS::Scheduler::Schedule").values()]
    assert statement["Action"] == "lambda:InvokeFunction"
    assert sorted(statement["Resource"]) == sorted(targets)


def test_lambda_neither_retries_nor_keeps_an_event(template: Template, functions: dict[str, dict[str, Any]]) -> None:
    """CL-13: a poller that fails runs once, not three times; a throttled event is dropped after a minute."""
    found = resources(template, "AWS::Lambda::EventInvokeConfig").values()
    assert {each["FunctionName"] for each in found} == set(functions)
    for each in found:
        assert (each["MaximumRetryAttempts"], each["MaximumEventAgeInSeconds"]) == (0, 60)
        assert each["Qualifier"] == "$LATEST"


def test_dead_letters_are_kept_two_weeks_and_encrypted(template: Template) -> None:
    """AL-04: somebody can look at them after a holiday."""
    (queue,) = resources(template, "AWS::SQS::Queue").values()
    assert queue == {"MessageRetentionPeriod": 14 * 24 * 3600, "SqsManagedSseEnabled": True}


def test_each_function_gets_what_its_policy_says(
    functions: dict[str, dict[str, Any]], policies: dict[str, Policy]
) -> None:
    """LD-09: an attempt with its margin fits into the function, so its lease ends no later than a margin after it."""
    for kind, name in (
        ("close_conversation", "PollerCloseConversation"),
        ("accounting_export", "PollerAccountingExport"),
    ):
        run, function = policies[kind].run, functions[name]
        assert function["Timeout"] == run.poller_timeout.total_seconds()
        assert function["MemorySize"] == run.memory_mb
        assert policies[kind].lease.total_seconds() <= function["Timeout"] <= 900
    assert (functions["Sweeper"]["Timeout"], functions["Monitor"]["Timeout"]) == (120, 60)


def test_functions_log_json_to_a_group_of_their_own_that_ends(
    template: Template, functions: dict[str, dict[str, Any]]
) -> None:
    """And are traced by nobody: the X-Ray SDK does not ship, and pollers have no way to its endpoint."""
    groups = resources(template, "AWS::Logs::LogGroup")
    for name, function in functions.items():
        assert function["LoggingConfig"] == {"LogFormat": "JSON", "LogGroup": f"{name}Logs"}
        assert groups[f"{name}Logs"]["RetentionInDays"] == 30
        assert "TracingConfig" not in function
    assert all(group["RetentionInDays"] == 30 for group in groups.values())


def test_settings_read_every_variable_of_the_template_and_miss_none(
    functions: dict[str, dict[str, Any]], policies: dict[str, Policy]
) -> None:
    """The library itself reads the environment of each function, with the folders of what was built for it."""
    known = Path(settings.__file__).read_text(encoding="utf-8")
    for name, function in functions.items():
        variables = _environment(name, function, policies)
        for variable in variables:
            if variable.startswith("STOPLINE_"):
                assert f'"{variable}"' in known or variable.startswith(settings.ROLE_PREFIX), variable
        assert SETTINGS[name](variables).target.user == function["Environment"]["Variables"]["STOPLINE_DB_USER"]


def test_every_function_verifies_the_databases_certificate_with_a_file_that_ships(
    functions: dict[str, dict[str, Any]], policies: dict[str, Policy]
) -> None:
    """CO-14: verify-full, the roots in the layer, the cluster's own host name."""
    for name, function in functions.items():
        target = SETTINGS[name](_environment(name, function, policies)).target
        info = target.conninfo("token")
        assert (info["sslmode"], info["host"]) == ("verify-full", "database.example.com")
        inside = str(info["sslrootcert"]).split("/python/", 1)[1]
        assert (build_layer(ARM) / "python" / inside).is_file()


def test_a_kinds_environment_and_database_role_reach_its_poller_and_no_other(
    functions: dict[str, dict[str, Any]],
) -> None:
    """[access] becomes that poller's environment."""
    close = functions["PollerCloseConversation"]["Environment"]["Variables"]
    export = functions["PollerAccountingExport"]["Environment"]["Variables"]
    assert close["STOPLINE_KINDS"] == "close_conversation"
    assert close["STOPLINE_ROLE_CLOSE_CONVERSATION"] == "close_conversation_app"
    assert close["CLOSE_CONVERSATION_MODEL"] == "global.anthropic.claude-sonnet-4-6"
    assert export["ACCOUNTING_URL"] == "https://accounting.example.com"
    assert not [name for name in export if "CLOSE_CONVERSATION" in name]


def test_only_functions_whose_kinds_ask_for_it_stand_where_a_way_out_is(raw: Template) -> None:
    """[access] becomes that poller's network: the sweeper and the monitor reach the database and nothing else."""
    subnets = {}
    for logical_id, resource in raw["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Function" and "VpcConfig" in resource["Properties"]:
            subnets[name_of(logical_id)] = json.dumps(resource["Properties"]["VpcConfig"]["SubnetIds"])
    outside = {name for name, ids in subnets.items() if "FunctionsSubnet" in ids}
    assert outside == {"PollerCloseConversation", "PollerAccountingExport"}
    assert all("IsolatedSubnet" in ids for name, ids in subnets.items() if name not in outside)


def test_functions_share_one_security_group(functions: dict[str, dict[str, Any]]) -> None:
    """It names the database's clients, and lies in the stack that outlives this one."""
    groups = {json.dumps(function["VpcConfig"]["SecurityGroupIds"]) for function in functions.values()}
    assert groups == {'["of-the-database-stack"]'}


def test_nothing_that_runs_is_changed_before_the_database_is_migrated(raw: Template) -> None:
    """MI-02: neither a poller nor a schedule; the migrator itself waits for nobody but the bootstrap."""
    migrated = next(
        id for id in raw["Resources"] if id.startswith("SetupMigrate") and _kind(raw, id) == "Custom::Trigger"
    )
    waiting = {name_of(id) for id, each in raw["Resources"].items() if migrated in each.get("DependsOn", [])}
    schedules = {name_of(id) for id in raw["Resources"] if _kind(raw, id) == "AWS::Scheduler::Schedule"}
    assert set(EVERY) | schedules <= waiting
    assert not AT_DEPLOY & waiting


def test_concurrency_is_reserved_by_nobody(functions: dict[str, dict[str, Any]]) -> None:
    """LD-06: in an account whose quota is ten, a reservation would fail the deploy."""
    assert not [name for name, function in functions.items() if "ReservedConcurrentExecutions" in function]


def test_the_worst_case_is_an_output_and_is_printed(
    synthesized: Callable[[str], Synthesis], template: Template
) -> None:
    """Whoever deploys reads the most that a job can cost before it runs."""
    worst = "5 attempts x 1 call x $0.20 = at most $1.00 a round; at most $50.00 a day"
    assert template["Outputs"]["WorstCaseCloseConversation"]["Value"] == worst
    assert template["Outputs"]["Connections"]["Value"] == "at most 13 of 756"
    assert f"close_conversation: {worst}" in synthesized("default").output


def _environment(name: str, function: dict[str, Any], policies: dict[str, Policy]) -> dict[str, str]:
    """A function's variables as Lambda gives them, its folders where they were built."""
    handler = name.removeprefix("Setup").lower() if not name.startswith("Poller") else "poller"
    built = str(build_function(handler, ARM, JOBS_DIR, kinds=sorted(policies)))
    variables: dict[str, str] = function["Environment"]["Variables"]
    return {key: text.replace("/var/task", built) for key, text in variables.items()} | {"AWS_REGION": REGION}


def _function_of(schedule: dict[str, Any]) -> str:
    return str(schedule["Target"]["Arn"]).rsplit(":", 1)[-1]


def _kind(template: Template, logical_id: str) -> str:
    return str(template["Resources"][logical_id]["Type"])
