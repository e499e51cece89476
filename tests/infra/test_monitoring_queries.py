"""Saved queries read fields that are really logged, and what an alarm says to run first can be run."""

import re
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest
import typer
from aws_cdk import aws_logs as logs
from aws_cdk.assertions import Template

from stacks.alarm_rules import RULES, kind_rules
from stacks.constructs.saved_queries import MOST_LOG_GROUPS, SavedQueries
from stacks.log_queries import QUERIES, LogQuery, Logs
from stopline.policy import Policy
from stopline_cli.main import app
from tests.infra.emitted import monitor_lines, poller_lines
from tests.support.database import Database
from tests.support.synth import Synthesis

OF_LAMBDA = {"level", "message", "errorType", "errorMessage", "record.status"}
"""Of Lambda's own JSON lines: an exception that ended the function, and its platform reports."""

LANGUAGE = {
    "fields", "filter", "sort", "limit", "display", "stats", "unnest", "into", "by", "as", "asc", "desc", "or", "and",
    "in", "count", "latest", "ispresent", "jsonParse",
}  # fmt: skip

TWO_BAD_ENDINGS = """
from stopline import Permanent, Transient

def run(job):
    print("about to fail")
    raise Permanent("no such account") if job.payload == "bad" else Transient("busy")
"""


def fields_of(query: LogQuery) -> set[str]:
    """The fields that a query reads: every word that is no keyword, text, number, system field or name of its own."""
    text = re.sub(r'"[^"]*"', "", query.text)
    named = set(re.findall(r"\b(?:as|into)\s+(\w+)", text))
    words = set(re.findall(r"(?<![@\w.])[A-Za-z_][\w.]*", text))
    return {word for word in words if word not in LANGUAGE and word.split(".")[0] not in named}


def members_of(query: LogQuery, name: str) -> set[str]:
    """What a query reads of a structure that it named itself: `kind.due` is the member due of `kind`."""
    return set(re.findall(rf"\b{name}\.(\w+)", query.text))


def query(name: str) -> LogQuery:
    (found,) = (each for each in QUERIES if each.name == name)
    return found


def messages_of(text: str) -> set[str]:
    """The events that a query asks for by name."""
    listed = re.findall(r'message (?:= |in \[)((?:"\w+"(?:, )?)+)', text)
    return {word for each in listed for word in re.findall(r'"(\w+)"', each)}


@pytest.mark.parametrize("name", [each.name for each in QUERIES if each.logs == Logs.POLLERS])
def test_a_query_of_the_pollers_reads_fields_of_their_lines(name: str, db: Database, tmp_path: Path) -> None:
    lines = poller_lines(db, tmp_path, TWO_BAD_ENDINGS, ["bad", "good"])
    assert {"attempt", "output", "poll"} <= {line.get("message") for line in lines}
    known = {field for line in lines for field in line} | OF_LAMBDA
    # A line of a failed visit, which this run has none of: `kind` and `error`, said in worker/poll.py.
    assert fields_of(query(name)) - known <= {"error"}


@pytest.mark.parametrize("name", ["Monitor failures", "Sweeper failures"])
def test_a_query_of_failures_reads_lambdas_own_fields(name: str) -> None:
    assert fields_of(query(name)) <= OF_LAMBDA | {"error"}


def test_the_query_of_kinds_reads_what_the_monitor_tells_of_a_kind(db: Database) -> None:
    db.policy("work")
    (line,) = (each for each in monitor_lines(db) if "_aws" in each)
    assert members_of(query("Kinds now"), "line") == {"kinds"}
    assert members_of(query("Kinds now"), "kind") <= line["kinds"][0].keys()
    assert fields_of(query("Kinds now")) == {"_aws.Timestamp"}
    assert "Timestamp" in line["_aws"]


@pytest.mark.parametrize("each", QUERIES, ids=lambda each: str(each.name))
def test_an_event_that_a_query_asks_for_is_one_that_the_library_logs(each: LogQuery) -> None:
    library = Path(__file__).parents[2] / "layers" / "stopline" / "python" / "stopline"
    source = "".join(path.read_text(encoding="utf-8") for path in library.rglob("*.py"))
    for message in messages_of(each.text):
        assert f'"{message}"' in source


def test_the_saved_queries_of_a_deployment_are_these_over_the_logs_of_their_functions(
    synthesized: Callable[[str], Synthesis],
) -> None:
    template = synthesized("default").stack("Jobs")
    saved = saved_queries(template)
    assert {name: each["QueryString"] for name, each in saved.items()} == {
        f"Stopline/{each.name}": each.text for each in QUERIES
    }
    for each in QUERIES:
        groups = [reference["Ref"] for reference in saved[f"Stopline/{each.name}"]["LogGroupNames"]]
        word = "Poller" if each.logs == Logs.POLLERS else each.logs.value.capitalize()
        assert groups
        assert all(group.startswith(word) for group in groups)


def test_more_pollers_than_a_query_can_read_are_read_by_two() -> None:
    stack = cdk.Stack()
    pollers = [logs.LogGroup(stack, f"Logs{number}") for number in range(MOST_LOG_GROUPS + 1)]
    one = pollers[:1]
    groups = {Logs.POLLERS: pollers, Logs.MONITOR: one, Logs.SWEEPER: one}
    SavedQueries(stack, "Queries", prefix="Stopline", log_groups=groups)
    sizes = {
        name: len(each["LogGroupNames"]) for name, each in saved_queries(Template.from_stack(stack).to_json()).items()
    }
    assert (sizes["Stopline/One job"], sizes["Stopline/One job 2"]) == (50, 1)
    assert len(sizes) == len(QUERIES) + len([each for each in QUERIES if each.logs == Logs.POLLERS])


def saved_queries(template: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Properties by name."""
    found = [each for each in template["Resources"].values() if each["Type"] == "AWS::Logs::QueryDefinition"]
    return {each["Properties"]["Name"]: each["Properties"] for each in found}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule.name))
def test_what_an_alarm_says_to_run_first_is_a_command_or_a_saved_query(rule: Any) -> None:
    assert runs(rule.first_query)


def test_what_a_kinds_own_alarm_says_to_run_first_is_a_command_or_a_saved_query(policies: dict[str, Policy]) -> None:
    for policy in policies.values():
        assert all(runs(rule.first_query) for rule in kind_rules(policy))


def runs(first: str) -> bool:
    """Whether a command line is one that `stopline` takes, or a name is a saved query's."""
    if not first.startswith("stopline "):
        return first in {each.name for each in QUERIES}
    name, *arguments = shlex.split(first.removeprefix("stopline "))
    commands: dict[str, Any] = vars(typer.main.get_command(app))["commands"]
    commands[name].make_context(name, arguments)
    return True
