"""What the checks found and was left, exactly. A finding more fails the synth, an acknowledgement more fails here."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.support.synth import EXAMPLES, Synthesis

Synthesized = Callable[[str], Synthesis]

_INTERFACE = "AwsSolutions-IAM5[Resource::*]"
_ROLES = (
    "Monitor",
    "PollerAccountingExport",
    "PollerCloseConversation",
    "Setup/Bootstrap",
    "Setup/Migrator",
    "Sweeper",
)
LEFT = {
    # A VPC without flow logs: functions and a database, each admitted by a security group.
    ("Database/Vpc", "AwsSolutions-VPC7"),
    # The validator's list of Aurora's versions is as old as the CDK's pin.
    ("Database/Cluster/Resource", "CloudFormation-Validate::E9006"),
    # A dead-letter queue of schedules, which cdk-nag does not know as one.
    ("Jobs/Schedules/DeadLetters", "AwsSolutions-SQS3"),
    # Lambda makes a network interface with rights that can name no resource; the code itself is denied them.
    *((f"Jobs/{role}Role", _INTERFACE) for role in _ROLES),
}
OF_THE_CDK = {"CloudFormation-Validate::W3010"}
"""What the CDK acknowledges by itself."""


def acknowledged(synthesis: Synthesis) -> Iterator[tuple[str, str, str]]:
    """Construct path without the prefix of the stacks, finding, and reason."""
    for file in synthesis.folder.glob("*.metadata.json"):
        for path, entries in json.loads(file.read_text()).items():
            for entry in entries:
                if entry["type"] == "aws:cdk:acknowledged-rules":
                    for finding, reason in entry["data"].items():
                        yield path.removeprefix("/").removeprefix("Stopline"), finding, reason


def ours(synthesis: Synthesis) -> set[tuple[str, str]]:
    return {
        (path, finding.removeprefix("Annotation::"))
        for path, finding, _ in acknowledged(synthesis)
        if finding not in OF_THE_CDK
    }


def test_the_default_deployment_leaves_these_findings_and_no_others(synthesized: Synthesized) -> None:
    assert ours(synthesized("default")) == LEFT


@pytest.mark.parametrize("example", [example for example in EXAMPLES if example != "existing-database"])
def test_no_example_leaves_a_finding_that_the_default_does_not(synthesized: Synthesized, example: str) -> None:
    assert {finding for _, finding in ours(synthesized(example))} <= {finding for _, finding in LEFT}


def test_an_existing_network_only_adds_that_its_routes_are_unknown(synthesized: Synthesized) -> None:
    more = ours(synthesized("existing-database")) - LEFT
    assert more == {(f"Database/Subnet{number}", "@aws-cdk/aws-ec2:noSubnetRouteTableId") for number in (1, 2)}


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_acknowledgement_says_why(synthesized: Synthesized, example: str) -> None:
    for path, finding, reason in acknowledged(synthesized(example)):
        assert len(reason) > 20, (path, finding)


@pytest.mark.parametrize("example", EXAMPLES)
def test_nothing_else_was_found_by_cdk_nag_or_the_cdk(synthesized: Synthesized, example: str) -> None:
    found = [
        (violation["severity"], violation["ruleName"])
        for plugin in synthesized(example).report["pluginReports"]
        for violation in plugin["violations"]
        if violation["severity"] != "info"
    ]
    assert found == []
