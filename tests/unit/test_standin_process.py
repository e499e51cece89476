"""A stand-in as a process of its own, driven over its pages."""

import json
import os
import subprocess
import sys
import threading
import urllib.error
from pathlib import Path

import pytest
import urllib3

import stopline_cli
from stopline_cli.standins.bedrock import BedrockService
from stopline_cli.standins.process import StandInProcess
from stopline_cli.standins.server import StandIn
from stopline_cli.standins.service import Answer, Request
from tests.unit.handmade_job import bedrock_client

CLI = str(Path(stopline_cli.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": CLI}


def converse(url: str, conversation: int) -> None:
    client = bedrock_client(url)
    text = f"conversation_id: {conversation}"
    client.converse(modelId="a.b", messages=[{"role": "user", "content": [{"text": text}]}])
    client.close()


def test_a_driver_scripts_faults_reads_calls_and_resets() -> None:
    with StandInProcess("bedrock", ENVIRONMENT) as standin:
        standin.script({"7": [{"fault": "throttle", "times": 1}]})
        client = bedrock_client(standin.url)
        with pytest.raises(client.exceptions.ThrottlingException):
            converse(standin.url, 7)
        client.close()
        converse(standin.url, 7)
        converse(standin.url, 8)
        seen = standin.calls()
        assert (seen["total"], seen["accepted"]) == (3, 2)
        assert seen["by_marker"] == {"7": {"calls": 2, "accepted": 1}, "8": {"calls": 1, "accepted": 1}}
        standin.reset()
        assert standin.calls()["calls"] == []


def test_a_wrong_script_is_answered_with_the_rule() -> None:
    with StandInProcess("connector", ENVIRONMENT) as standin:
        with pytest.raises(urllib.error.HTTPError) as caught:
            standin.script({"INV-1": [{"fault": "empty"}]})
        assert "INV-1[0].fault: must be one of" in json.load(caught.value)["message"]
        caught.value.close()


def test_it_takes_a_script_from_a_file_and_ends_when_its_parent_closes_standard_input(tmp_path: Path) -> None:
    file = tmp_path / "script.json"
    file.write_text('{"lookup:*": [{"fault": "unavailable"}]}', encoding="utf-8")
    command = [sys.executable, "-m", "stopline_cli.standins.connector", "--port", "0", "--script", str(file)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        port = json.loads(process.stdout.readline())["port"]
        assert urllib3.request("GET", f"http://127.0.0.1:{port}/batches/x", retries=False).status == 503
        process.stdin.close()
        assert process.wait(10) == 0
        assert process.stdout.read() == b""


class Announcing(BedrockService):
    """Says when the first request has arrived."""

    def __init__(self) -> None:
        super().__init__()
        self.arrived = threading.Event()

    def handle(self, request: Request) -> Answer:
        answer = super().handle(request)
        self.arrived.set()
        return answer


def test_a_request_that_hangs_ends_when_the_stand_in_stops() -> None:
    service = Announcing()
    standin = StandIn(service)
    standin.start()
    service.script.replace({"*": [{"fault": "hang"}]})
    ended: list[str] = []

    def wait() -> None:
        try:
            converse(standin.url, 1)
        except Exception as error:
            ended.append(type(error).__name__)

    client = threading.Thread(target=wait)
    client.start()
    assert service.arrived.wait(10)
    standin.stop()
    client.join(10)
    assert ended == ["ConnectionClosedError"]
    assert not client.is_alive()


def test_many_requests_at_once_are_each_counted_once() -> None:
    with StandIn(BedrockService()) as standin:
        client = bedrock_client(standin.url)
        request = {"modelId": "a.b", "messages": [{"role": "user", "content": [{"text": "conversation_id: 5"}]}]}
        threads = [threading.Thread(target=lambda: [client.converse(**request) for _ in range(5)]) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        client.close()
        seen = standin.service.state()
    assert seen["by_marker"] == {"5": {"calls": 40, "accepted": 40}}
    assert [call["n"] for call in seen["calls"]] == list(range(1, 41))
