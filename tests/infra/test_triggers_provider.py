"""What the CDK's trigger provider really does with our functions' answers: its own code, as synthesized, on Node.js."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stacks.constructs.triggers import WAITS_LONGER
from tests.support.synth import Synthesis

DRIVER = Path(__file__).with_name("trigger_provider.js")
VERSION = "arn:aws:lambda:eu-central-1:111122223333:function:migrator:7"
FINE = {"StatusCode": 200, "Payload": json.dumps({"schema_version": 4})}

Run = Callable[..., tuple[list[dict[str, Any]], dict[str, Any]]]


@pytest.fixture(scope="module")
def provider(synthesized: Callable[[str], Synthesis]) -> Run:
    """Calls the provider with one CloudFormation event; gives back its calls of our function, and its reply."""
    (entry,) = synthesized("default").folder.glob("asset.*/__entrypoint__.js")

    def run(
        request: str, *answers: dict[str, Any], physical_id: str | None = None
    ) -> tuple[list[dict[str, Any]], dict[str, Any]]:
        event = {
            "RequestType": request,
            "RequestId": "request-1",
            "StackId": "stack-1",
            "LogicalResourceId": "SetupMigrate",
            "ResponseURL": "https://cloudformation.example.com/answer",
            "ResourceProperties": {
                "HandlerArn": VERSION,
                "InvocationType": "RequestResponse",
                "Timeout": "870000",
                "ExecuteOnHandlerChange": "true",
            },
        }
        if physical_id is not None:
            event["PhysicalResourceId"] = physical_id
        told = json.dumps({"folder": str(entry.parent), "event": event, "answers": answers})
        finished = subprocess.run(
            [os.environ["JSII_NODE"], str(DRIVER)], input=told, capture_output=True, text=True, timeout=60, check=False
        )
        assert finished.returncode == 0, finished.stderr
        said = json.loads(finished.stdout)
        return said["calls"], said["reply"]

    return run


def test_a_first_deploy_calls_the_function_once_and_waits_for_its_answer(provider: Run) -> None:
    calls, reply = provider("Create", FINE)
    assert [(call["FunctionName"], call["InvocationType"]) for call in calls] == [(VERSION, "RequestResponse")]
    assert reply["Status"] == "SUCCESS"


def test_a_later_deploy_keeps_the_physical_id_so_that_nothing_is_deleted_behind_it(provider: Run) -> None:
    """MI-02: with another id CloudFormation would send a delete for the old one."""
    calls, reply = provider("Update", FINE, physical_id="request-0")
    assert len(calls) == 1
    assert (reply["Status"], reply["PhysicalResourceId"]) == ("SUCCESS", "request-0")


def test_a_deletion_calls_nothing_and_succeeds(provider: Run) -> None:
    """MI-01, MI-02: destroying the stack never waits for the database and never drops data."""
    calls, reply = provider("Delete", physical_id="request-0")
    assert calls == []
    assert (reply["Status"], reply["PhysicalResourceId"]) == ("SUCCESS", "request-0")


def test_a_failed_migration_fails_the_deploy_with_its_own_words(provider: Run) -> None:
    """MI-01: the answer comes at once, and its text is the function's."""
    told = "42P07 sql/migrations/0002_more.sql: relation exists"
    payload = json.dumps({"errorMessage": told, "errorType": "MigrationFailed", "stackTrace": ["..."]})
    calls, reply = provider(
        "Update", {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": payload}, physical_id="r"
    )
    assert len(calls) == 1, "a failed migration is not tried again behind our back"
    assert reply["Status"] == "FAILED"
    assert reply["Reason"].startswith(f"Error: {told}")


def test_the_longest_error_of_ours_fits_what_cloudformation_takes(provider: Run) -> None:
    payload = json.dumps({"errorMessage": "\u00e4" * 750, "errorType": "MigrationFailed"})
    _, reply = provider("Create", {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": payload})
    assert len(json.dumps(reply, ensure_ascii=False).encode()) < 4096


def test_a_module_that_cannot_be_imported_fails_the_deploy_in_the_first_call(provider: Run) -> None:
    """MI-01: a handler that dies before it can answer does not leave CloudFormation waiting for an hour."""
    payload = json.dumps({"errorMessage": "Unable to import module 'handler': No module named 'psycopg'"})
    calls, reply = provider("Create", {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": payload})
    assert len(calls) == 1
    assert (reply["Status"], "No module named 'psycopg'" in reply["Reason"]) == ("FAILED", True)


def test_a_failed_creation_is_marked_so_that_its_deletion_succeeds_too(provider: Run) -> None:
    """MI-01: a rollback of a first deploy does not get stuck on the resource that failed."""
    payload = json.dumps({"errorMessage": "08006 cannot connect"})
    _, failed = provider("Create", {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": payload})
    calls, reply = provider("Delete", physical_id=failed["PhysicalResourceId"])
    assert (calls, reply["Status"]) == ([], "SUCCESS")


def test_a_lost_call_fails_the_deploy_too(provider: Run) -> None:
    _, reply = provider("Update", {"thrown": {"name": "TimeoutError", "message": "socket timed out"}}, physical_id="r")
    assert (reply["Status"], "socket timed out" in reply["Reason"]) == ("FAILED", True)


def test_each_function_ends_before_its_call_and_that_before_the_provider(
    synthesized: Callable[[str], Synthesis],
) -> None:
    """MI-01: were the call to end first, the SDK would make it again, twice, beside a run that goes on."""
    resources = synthesized("default").stack("Jobs")["Resources"]
    functions = {name: each for name, each in resources.items() if each["Type"] == "AWS::Lambda::Function"}
    (provider_limit,) = (
        each["Properties"]["Timeout"] for name, each in functions.items() if name.startswith("AWSCDKTrigger")
    )
    triggers = [each["Properties"] for each in resources.values() if each["Type"] == "Custom::Trigger"]
    assert len(triggers) == 2
    for trigger in triggers:
        function = resources[resources[trigger["HandlerArn"]["Ref"]]["Properties"]["FunctionName"]["Ref"]]
        wait = int(trigger["Timeout"]) / 1000
        assert wait == function["Properties"]["Timeout"] + WAITS_LONGER.total_seconds()
        assert wait < provider_limit
        assert function["Properties"]["Timeout"] <= 14 * 60
