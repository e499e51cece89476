"""How what a kind declares in [access] becomes a right: models, profiles, secrets."""

import aws_cdk as cdk
import pytest

from stacks.constructs.roles import access_statements, secret_arn
from stopline.policy import Policy, overlay
from tests.infra.resolved import ACCOUNT, REGION

HERE = f"{REGION}:{ACCOUNT}"


@pytest.fixture(scope="module")
def stack() -> cdk.Stack:
    """A stack whose account and Region are known, so that ARNs are plain text."""
    return cdk.Stack(cdk.App(), "Test", env=cdk.Environment(account=ACCOUNT, region=REGION))


def test_a_foundation_model_is_granted_in_this_region_alone(stack: cdk.Stack, policies: dict[str, Policy]) -> None:
    """Its id says no more."""
    assert _granted(stack, policies, "amazon.nova-lite-v1:0") == [
        (["foundation-model/amazon.nova-lite-v1:0"], REGION, None)
    ]


def test_a_geographic_profile_is_granted_with_its_model_wherever_it_routes(
    stack: cdk.Stack, policies: dict[str, Policy]
) -> None:
    """The Regions of a geography are AWS's to choose; none of them may be called directly."""
    profile = f"arn:{stack.partition}:bedrock:{HERE}:inference-profile/eu.anthropic.claude-sonnet-4-6"
    assert _granted(stack, policies, "eu.anthropic.claude-sonnet-4-6") == [
        (["inference-profile/eu.anthropic.claude-sonnet-4-6"], REGION, None),
        (["foundation-model/anthropic.claude-sonnet-4-6"], "*", profile),
    ]


def test_a_profile_given_as_an_arn_is_granted_as_it_stands(stack: cdk.Stack, policies: dict[str, Policy]) -> None:
    """An application's own profile does not tell its model: any model, through that profile."""
    arn = f"arn:aws:bedrock:{HERE}:application-inference-profile/abc123"
    first, second = _granted(stack, policies, arn)
    assert first == (["application-inference-profile/abc123"], REGION, None)
    assert second == (["foundation-model/*"], "*", arn)


def test_another_arn_is_granted_as_it_stands(stack: cdk.Stack, policies: dict[str, Policy]) -> None:
    """Provisioned throughput, a custom or an imported model."""
    arn = f"arn:aws:bedrock:{HERE}:provisioned-model/xyz"
    assert _granted(stack, policies, arn) == [(["provisioned-model/xyz"], REGION, None)]


def test_kinds_without_models_and_secrets_get_no_statement(stack: cdk.Stack, policies: dict[str, Policy]) -> None:
    """Nothing is granted in advance."""
    assert access_statements(stack, [policies["accounting_export"]]) == []


def test_a_secrets_name_is_granted_with_its_six_characters_and_no_more(stack: cdk.Stack) -> None:
    """`app/token` must not let `app/token-of-another` be read."""
    prefix = f"arn:{stack.partition}:secretsmanager:{HERE}:secret:"
    assert secret_arn(stack, "app/token") == f"{prefix}app/token-??????"
    full = f"arn:aws:secretsmanager:{HERE}:secret:app/token-a1B2c3"
    assert secret_arn(stack, full) == full
    partial = f"arn:aws:secretsmanager:{HERE}:secret:app/token"
    assert secret_arn(stack, partial) == f"{partial}-??????"


def test_secrets_of_all_kinds_of_a_poller_are_read_by_value_only(stack: cdk.Stack, policies: dict[str, Policy]) -> None:
    """No listing, no description, no writing."""
    kind = overlay(policies["accounting_export"], {"access": {"secrets": ["app/token"]}})
    (statement,) = access_statements(stack, [kind])
    assert statement.actions == ["secretsmanager:GetSecretValue"]
    assert statement.resources == [secret_arn(stack, "app/token")]


def _granted(stack: cdk.Stack, policies: dict[str, Policy], model: str) -> list[tuple[list[str], str, str | None]]:
    """Of each statement: the resources' last part, their Region, and the profile that it is bound to."""
    kind = overlay(policies["close_conversation"], {"access": {"bedrock_models": [model]}})
    found = []
    for statement in access_statements(stack, [kind]):
        assert statement.actions == ["bedrock:InvokeModel"]
        parts = [resource.split(":", 5) for resource in statement.resources]
        bound = statement.conditions.get("ArnEquals", {}).get("bedrock:InferenceProfileArn")
        found.append(([part[5] for part in parts], parts[0][3], bound))
    return found
