"""How many kinds a stack holds: the number is pinned, that many are synthesized, and one more is refused."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from aws_cdk import aws_lambda as lambda_

from stacks.checks import (
    FIXED_RESOURCES,
    FUNCTION_ARN_BYTES,
    POLLER_RESOURCES,
    ROLE_POLICY_BYTES,
    STACK_RESOURCES,
    CheckFailed,
    check_deployment,
    kinds_that_fit,
    resource_count,
)
from stacks.pollers import plan_pollers
from stopline.policy import parse_policy
from tests.infra.jobs_stack import PLAIN, config, jobs_template
from tests.infra.resolved import resources
from tests.support.synth import Synthesis

MOST = 74
TEMPLATE_BYTES = 1_000_000
CALM = PLAIN + 'every = "5m"\n'
PERIODIC = f'{CALM}[enqueue]\nschedule = "rate(1 hour)"\n'


def test_the_number_of_kinds_that_fit_is_pinned() -> None:
    """It falls when a poller gets another resource: then somebody's deployment stops fitting."""
    assert kinds_that_fit() == MOST


def test_a_poller_costs_as_many_resources_as_the_check_counts(synthesized: Callable[[str], Synthesis]) -> None:
    """Of the default deployment, whose fixed part is the largest: it bootstraps."""
    template = synthesized("default").stack("Jobs")
    assert len(template["Resources"]) == resource_count(2, 0) == FIXED_RESOURCES + 2 * POLLER_RESOURCES


def test_that_many_kinds_fit_into_every_limit_of_a_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Resources, the bytes of a template, outputs, and what the scheduler's role can name."""
    (tmp_path / "code").mkdir()
    (tmp_path / "code" / "handler.py").write_text("")
    for name in ("layer_asset", "function_asset"):
        stand_in = lambda *_: lambda_.Code.from_asset(str(tmp_path / "code"))  # noqa: E731
        monkeypatch.setattr(f"stacks.constructs.functions.{name}", stand_in)
    names = [f"kind_with_a_name_of_forty_eight_characters_{n:05d}" for n in range(MOST)]
    assert {len(name) for name in names} == {48}
    policies = {name: parse_policy(name, PERIODIC, "policy.toml") for name in names}
    template = jobs_template(policies, tmp_path / "out")
    assert len(template["Resources"]) == resource_count(MOST, MOST) <= STACK_RESOURCES
    assert len(json.dumps(template, indent=1)) < TEMPLATE_BYTES
    assert len(template["Outputs"]) < 200
    role = resources(template, "AWS::IAM::Role")["SchedulesRole"]
    document = role["Policies"][0]["PolicyDocument"]
    targets = next(each for each in document["Statement"] if each["Sid"] == "Invoke")["Resource"]
    assert len(targets) == MOST + 2
    rest = len(json.dumps(document, separators=(",", ":"))) - len(json.dumps(targets, separators=(",", ":")))
    assert rest + len(targets) * FUNCTION_ARN_BYTES <= ROLE_POLICY_BYTES


def test_one_kind_more_is_refused_with_what_to_do() -> None:
    """At synth, and not by CloudFormation after half an hour."""
    policies = {f"kind_{n}": parse_policy(f"kind_{n}", CALM, "policy.toml") for n in range(MOST + 1)}
    with pytest.raises(CheckFailed, match=rf"75 pollers .* holds {MOST} pollers .* let kinds share pollers"):
        check_deployment(config(), 5000, plan_pollers(policies))


def test_periodic_kinds_count_too() -> None:
    """Each has a schedule of its own, also where pollers are shared."""
    text = PERIODIC.replace("every", 'poller = "shared"\nevery')
    policies = {f"kind_{n}": parse_policy(f"kind_{n}", text, "policy.toml") for n in range(180)}
    check_deployment(config(), 5000, plan_pollers(policies))
    policies |= {f"own_{n}": parse_policy(f"own_{n}", CALM, "policy.toml") for n in range(60)}
    with pytest.raises(CheckFailed, match="61 pollers and 180 periodic kinds"):
        check_deployment(config(), 5000, plan_pollers(policies))


def test_more_kinds_than_a_stack_has_outputs_are_refused_also_where_they_share_a_poller() -> None:
    """The worst case of each is an output."""
    text = CALM + 'poller = "shared"\n'
    policies = {f"kind_{n}": parse_policy(f"kind_{n}", text, "policy.toml") for n in range(190)}
    with pytest.raises(CheckFailed, match="190 kinds and 1 pollers: a stack has 190 outputs"):
        check_deployment(config(), 5000, plan_pollers(policies))
