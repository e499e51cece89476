"""What the docs list is what the code knows."""

import re
from enum import StrEnum
from pathlib import Path

import pytest

from stopline.error_reference import error_reference
from stopline.policy.reference import reference
from stopline.states import DueRule, EnqueueAnswer, OperatorAnswer, Outcome, ReceiverAnswer, State, StopReason
from stopline_cli.main import ACT

DOCS = Path(__file__).parents[2] / "docs"


def first_column(heading: str) -> set[str]:
    """The words in code style in the first column of the table under a heading of lifecycle.md."""
    text = (DOCS / "lifecycle.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]
    return {word for row in rows for word in re.findall(r"`([a-z_]+)`", row)}


@pytest.mark.parametrize(
    ("heading", "words"),
    [
        ("States", State),
        ("How an attempt ends", Outcome),
        ("Why a job stops", StopReason),
        ("When it is due", DueRule),
        ("Keys", EnqueueAnswer),
        ("Asking the receiver", ReceiverAnswer),
        ("What people do", OperatorAnswer),
    ],
)
def test_each_closed_list_stands_whole_in_the_lifecycle(heading: str, words: type[StrEnum]) -> None:
    assert first_column(heading) == {str(word) for word in words}


def test_every_key_of_a_policy_is_in_the_reference() -> None:
    assert reference() in (DOCS / "configure.md").read_text(encoding="utf-8")


def test_every_known_error_is_in_the_lifecycle_with_its_class_and_why() -> None:
    """FI-15: which answer ends a job and which keeps it can be looked up."""
    assert error_reference() in (DOCS / "lifecycle.md").read_text(encoding="utf-8")


def test_every_command_that_people_act_with_is_in_the_lifecycle() -> None:
    section = (DOCS / "lifecycle.md").read_text(encoding="utf-8").split("\n## What people do\n")[1].split("\n## ")[0]
    commands = set(re.findall(r"^\| `stopline ([a-z-]+) ", section, re.MULTILINE))
    assert commands == {command.__name__.replace("_", "-") for command in ACT}
