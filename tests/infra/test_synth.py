"""The synth itself: offline, the same twice, clean, marked, and refused with one line when a value is wrong."""

import json
import re
import subprocess
import sys
from collections.abc import Callable

import pytest

from tests.support.snapshots import FOLDER, normalised
from tests.support.synth import EXAMPLES, ROOT, Synthesis, synth
from tests.support.templates import of_type

Synthesized = Callable[[str], Synthesis]

STACKS = ("Database", "Jobs", "Monitoring")


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_makes_three_stacks_without_aws_docker_or_a_systems_node(
    synthesized: Synthesized, example: str
) -> None:
    """`synth` gives app.py an environment without credentials and a PATH without programs."""
    synthesis = synthesized(example)
    for stack in STACKS:
        assert synthesis.stack(stack)["Resources"]
    manifest = json.loads((synthesis.folder / "manifest.json").read_text())
    assert "missing" not in manifest, "nothing is looked up"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_passes_cfn_lint(synthesized: Synthesized, example: str) -> None:
    """W3005 (a dependency that a reference implies too) is how the CDK writes dependencies."""
    files = sorted(str(path) for path in synthesized(example).folder.glob("*.template.json"))
    finished = subprocess.run(
        [sys.executable, "-c", "from cfnlint.runner import main; main()", "--ignore-checks", "W3005", "--", *files],
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stdout + finished.stderr


def test_a_second_synth_is_identical_to_the_byte(
    synthesized: Synthesized, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("again")
    assert synth("-c", "config=examples/default.json", "-o", str(folder)).returncode == 0
    first = synthesized("default").folder
    names = sorted(path.name for path in first.glob("*.json") if path.name.endswith((".template.json", ".assets.json")))
    assert len(names) == 2 * len(STACKS)
    for name in names:
        assert (folder / name).read_bytes() == (first / name).read_bytes(), name


@pytest.mark.parametrize("stack", STACKS)
def test_the_templates_are_those_that_were_reviewed(synthesized: Synthesized, stack: str) -> None:
    """A review reads the difference of the snapshot: run `make snapshots` and look at it."""
    reviewed = (FOLDER / f"Stopline{stack}.json").read_text()
    assert normalised(synthesized("default").stack(stack)) == reviewed, "run `make snapshots` and review the difference"


def test_snapshots_hold_no_hash_and_no_path_of_a_machine() -> None:
    for file in FOLDER.glob("*.json"):
        assert not re.search(r"[0-9a-f]{32}|/home/|/root/|/tmp/|/work/", file.read_text()), file.name


def test_synth_prints_what_the_jobs_may_cost_at_most(synthesized: Synthesized) -> None:
    printed = synthesized("default").output
    assert "close_conversation: 5 attempts x 1 call x $0.20 = at most $1.00 a round" in printed
    assert "database connections: at most" in printed


def test_every_stack_is_protected_against_deletion_until_the_configuration_says_otherwise(
    synthesized: Synthesized,
) -> None:
    manifest = json.loads((synthesized("default").folder / "manifest.json").read_text())["artifacts"]
    for stack in STACKS:
        assert manifest[f"Stopline{stack}"]["properties"]["terminationProtection"] is True, stack


def test_tags_of_the_configuration_are_those_of_every_stack(synthesized: Synthesized) -> None:
    """CloudFormation hands them on to what a stack holds."""
    manifest = json.loads((synthesized("nat").folder / "manifest.json").read_text())["artifacts"]
    for stack in STACKS:
        tags = manifest[f"Stopline{stack}"]["properties"]["tags"]
        assert tags == {"environment": "production", "service": "stopline"}, stack


def test_another_prefix_is_another_deployment(synthesized: Synthesized) -> None:
    assert sorted(synthesized("x86").templates) == [f"StoplineX86{stack}" for stack in STACKS]


def test_the_database_is_found_in_the_outputs(synthesized: Synthesized) -> None:
    outputs = synthesized("default").stack("Database")["Outputs"]
    assert {"Endpoint", "DatabaseName", "ResourceId", "ClientSecurityGroup"} <= outputs.keys()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("-c", "egress=vpn"), "ConfigError: egress = 'vpn' (-c): must be"),
        (("-c", "kinds=close_conversatio"), "did you mean close_conversation?"),
        (("-c", "egress=none"), 'Set egress = "nat" (about $'),
    ],
)
def test_a_wrong_value_ends_the_synth_with_one_line_and_no_template(
    tmp_path_factory: pytest.TempPathFactory, arguments: tuple[str, ...], told: str
) -> None:
    folder = tmp_path_factory.mktemp("refused")
    finished = synth(*arguments, "-o", str(folder))
    assert finished.returncode == 1
    assert told in finished.stderr
    assert len(finished.stderr.splitlines()) == 1, finished.stderr
    assert not list(folder.glob("*.template.json"))


def test_the_app_takes_context_as_the_cdks_command_line_hands_it_over(tmp_path_factory: pytest.TempPathFactory) -> None:
    """`cdk deploy -c key=value` runs the command of cdk.json with the context and the folder in its environment."""
    assert json.loads((ROOT / "cdk.json").read_text())["app"] == ".venv/bin/python app.py"
    folder = tmp_path_factory.mktemp("cli")
    handed = {"config": "examples/bedrock-endpoint.json", "database.readers": "2", "prefix": "Cli"}
    finished = synth(environment={"CDK_OUTDIR": str(folder), "CDK_CONTEXT_JSON": json.dumps(handed)})
    assert finished.returncode == 0, finished.stderr
    template = json.loads((folder / "CliDatabase.template.json").read_text())
    assert len(of_type(template, "AWS::RDS::DBInstance")) == 3
