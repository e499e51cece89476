"""What each role may do, written out: whoever widens one has to change this list too."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.infra.policy_findings import findings
from tests.infra.resolved import ACCOUNT, NETWORK, REGION, resolved, resources, statements
from tests.support.synth import EXAMPLES, Synthesis

PLACE = f"{REGION}:{ACCOUNT}"
USER = f"arn:aws:rds-db:{PLACE}:dbuser:cluster-DATABASE"
FUNCTION = f"arn:aws:lambda:{PLACE}:function"
PROFILE = f"arn:aws:bedrock:{PLACE}:inference-profile/global.anthropic.claude-sonnet-4-6"
MODEL = "foundation-model/anthropic.claude-sonnet-4-6"

Grants = dict[str, list[str]]

OF_ITS_OWN: dict[str, Grants] = {
    "PollerCloseConversation": {
        "rds-db:connect": [f"{USER}/close_conversation_app", f"{USER}/stopline_worker"],
        "bedrock:InvokeModel": [f"arn:aws:bedrock:::{MODEL}", PROFILE, f"arn:aws:bedrock:{REGION}::{MODEL}"],
    },
    "PollerAccountingExport": {"rds-db:connect": [f"{USER}/stopline_worker"]},
    "Sweeper": {"rds-db:connect": [f"{USER}/stopline_sweeper"]},
    "Monitor": {"rds-db:connect": [f"{USER}/stopline_monitor"]},
    "SetupMigrator": {"rds-db:connect": [f"{USER}/stopline_owner"]},
    "SetupBootstrap": {"rds-db:connect": [f"{USER}/stopline_master"]},
}
"""Of each function, beside its log group and its network interface."""

NOT_OURS: dict[str, Grants] = {
    "SchedulesRole": {
        "lambda:InvokeFunction": [
            f"{FUNCTION}:Monitor",
            f"{FUNCTION}:PollerAccountingExport",
            f"{FUNCTION}:PollerCloseConversation",
            f"{FUNCTION}:Sweeper",
        ],
        "sqs:SendMessage": [f"arn:aws:sqs:{PLACE}:SchedulesDeadLetters"],
    },
    "AWSCDKTriggerCustomResourceProviderCustomResourceProviderRole": {
        "lambda:InvokeFunction": [f"{FUNCTION}:SetupBootstrap:*", f"{FUNCTION}:SetupMigrator:*"],
        "logs:CreateLogStream": [f"arn:aws:logs:{PLACE}:log-group:TriggerProviderLogs:*"],
        "logs:PutLogEvents": [f"arn:aws:logs:{PLACE}:log-group:TriggerProviderLogs:*"],
    },
}
"""Of the roles that no function of ours has."""


@pytest.fixture(scope="module")
def roles(synthesized: Callable[[str], Synthesis]) -> dict[str, dict[str, Any]]:
    """Every role of the default deployment's jobs stack."""
    return resources(resolved(synthesized("default").stack("Jobs")), "AWS::IAM::Role")


def test_every_function_may_do_exactly_what_is_listed(roles: dict[str, dict[str, Any]]) -> None:
    """Its log group, its network interface, its database users, and what its kinds declare."""
    expected = dict(NOT_OURS)
    for name, own in OF_ITS_OWN.items():
        log_group = [f"arn:aws:logs:{PLACE}:log-group:{name}Logs:*"]
        common = {"logs:CreateLogStream": log_group, "logs:PutLogEvents": log_group}
        expected[f"{name}Role"] = {**common, **{action: ["*"] for action in NETWORK}, **own}
    assert {name: _allowed(role) for name, role in roles.items()} == expected


def test_network_rights_that_lambda_needs_are_denied_to_the_functions_code(roles: dict[str, dict[str, Any]]) -> None:
    """They stand on every interface of the account, because Lambda uses them before there is one."""
    for name in OF_ITS_OWN:
        denied = [each for each in statements(roles[f"{name}Role"]) if each["Effect"] == "Deny"]
        assert [each["Action"] for each in denied] == [NETWORK]
        assert denied[0]["Condition"] == {"ArnLike": {"lambda:SourceFunctionArn": f"{FUNCTION}:*"}}


def test_a_model_behind_a_profile_is_granted_through_the_profile_only(roles: dict[str, dict[str, Any]]) -> None:
    """A direct call of the model, at another price or in another Region, is refused."""
    for statement in statements(roles["PollerCloseConversationRole"]):
        if any("foundation-model" in resource for resource in statement["Resource"]):
            assert statement["Condition"] == {"ArnEquals": {"bedrock:InferenceProfileArn": PROFILE}}


def test_each_role_is_assumed_by_its_service_alone(roles: dict[str, dict[str, Any]]) -> None:
    """AL-04: and the scheduler's by schedules of this deployment's group alone."""
    for name, role in roles.items():
        (statement,) = role["AssumeRolePolicyDocument"]["Statement"]
        service = "scheduler" if name == "SchedulesRole" else "lambda"
        assert statement["Principal"] == {"Service": f"{service}.amazonaws.com"}
    (statement,) = roles["SchedulesRole"]["AssumeRolePolicyDocument"]["Statement"]
    group = f"arn:aws:scheduler:{PLACE}:schedule-group/SchedulesGroup"
    assert statement["Condition"] == {"StringEquals": {"aws:SourceAccount": ACCOUNT, "aws:SourceArn": group}}


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_role_has_a_managed_policy_or_a_wildcard_in_an_action(
    example: str, synthesized: Callable[[str], Synthesis]
) -> None:
    """AWS's managed policies change behind a deployment's back, and every one of them names "*"."""
    template = resolved(synthesized(example).stack("Jobs"))
    assert not resources(template, "AWS::IAM::Policy")
    assert not resources(template, "AWS::IAM::ManagedPolicy")
    for name, role in resources(template, "AWS::IAM::Role").items():
        assert not role.get("ManagedPolicyArns"), name
        for statement in statements(role):
            assert not [action for action in statement["Action"] if "*" in action]
            if "*" in statement["Resource"]:
                assert statement["Action"] == NETWORK


@pytest.mark.parametrize("example", EXAMPLES)
def test_parliament_finds_nothing_in_any_policy(example: str, synthesized: Callable[[str], Synthesis]) -> None:
    """Every action exists, takes these resources, and knows its conditions."""
    for stack in ("Jobs", "Database"):
        template = resolved(synthesized(example).stack(stack))
        for name, role in resources(template, "AWS::IAM::Role").items():
            for policy in role.get("Policies", []):
                assert not findings(policy["PolicyDocument"]), name


def _allowed(role: dict[str, Any]) -> Grants:
    found: dict[str, set[str]] = {}
    for statement in statements(role):
        if statement["Effect"] == "Allow":
            for action in statement["Action"]:
                found.setdefault(action, set()).update(statement["Resource"])
    return {action: sorted(where) for action, where in found.items()}
