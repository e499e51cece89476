"""The Bedrock stand-in, as an unmodified boto3 client meets it."""

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError, ConnectionClosedError, ReadTimeoutError

from stopline_cli.standins.bedrock import ERRORS, BedrockService
from stopline_cli.standins.server import StandIn
from tests.unit.handmade_job import bedrock_client

MODEL = "global.anthropic.claude-sonnet-4-6"


@pytest.fixture
def bedrock() -> Iterator[StandIn]:
    with StandIn(BedrockService()) as standin:
        yield standin


def ask(standin: StandIn, conversation: int = 1001, *, read_timeout: float = 10.0, **changes: Any) -> Any:
    text = json.dumps({"conversation_id": conversation, "messages": ["Grüße 👋"]}, ensure_ascii=False)
    request: dict[str, Any] = {
        "modelId": MODEL,
        "system": [{"text": "Summarise."}],
        "messages": [{"role": "user", "content": [{"text": text}]}],
        "inferenceConfig": {"maxTokens": 200},
        **changes,
    }
    client = bedrock_client(standin.url, read_timeout)
    try:
        return client.converse(**request)
    finally:
        client.close()


def script(standin: StandIn, **steps: object) -> None:
    standin.service.script.replace({marker.lstrip("_"): value for marker, value in steps.items()})


def calls(standin: StandIn) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = standin.service.state()["calls"]
    return found


def test_an_answer_has_text_a_stop_reason_and_usage_that_adds_up(bedrock: StandIn) -> None:
    answer = ask(bedrock, 1001, requestMetadata={"stopline_job": "17"})
    assert "1001" in answer["output"]["message"]["content"][0]["text"]
    assert answer["output"]["message"]["role"] == "assistant"
    assert answer["stopReason"] == "end_turn"
    usage = answer["usage"]
    assert usage["totalTokens"] == usage["inputTokens"] + usage["outputTokens"] > 0
    assert answer["metrics"]["latencyMs"] >= 0
    (call,) = calls(bedrock)
    assert (call["marker"], call["status"], call["accepted"], call["fault"]) == ("1001", 200, True, None)
    assert call["details"] == {"model_id": MODEL, "metadata": {"stopline_job": "17"}}


@pytest.mark.parametrize(
    "model_id",
    [
        "anthropic.claude-3-haiku-20240307-v1:0",
        "arn:aws:bedrock:eu-central-1:123456789012:inference-profile/eu.anthropic.claude-sonnet-4-6",
    ],
)
def test_a_model_id_that_the_client_encodes_in_the_path_arrives_whole(bedrock: StandIn, model_id: str) -> None:
    ask(bedrock, modelId=model_id)
    assert calls(bedrock)[0]["details"]["model_id"] == model_id


def test_throttling_names_its_class_and_the_pause_and_is_one_request_on_the_wire(bedrock: StandIn) -> None:
    script(bedrock, _1004=[{"fault": "throttle", "times": 2, "retry_after": 6.2}])
    for _ in range(2):
        with pytest.raises(ClientError) as caught:
            ask(bedrock, 1004)
        assert caught.value.response["Error"]["Code"] == "ThrottlingException"
        assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == 429
        assert caught.value.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "7"
    assert ask(bedrock, 1004)["stopReason"] == "end_turn"
    assert [(call["status"], call["accepted"]) for call in calls(bedrock)] == [(429, False), (429, False), (200, True)]


@pytest.mark.parametrize("name", sorted(ERRORS))
def test_every_error_arrives_as_the_exception_and_status_of_the_service_model(bedrock: StandIn, name: str) -> None:
    script(bedrock, _1001=[{"fault": "error", "error": name}])
    client = bedrock_client(bedrock.url)
    shape = client.meta.service_model.shape_for(name)
    with pytest.raises(getattr(client.exceptions, name)) as caught:
        client.converse(modelId=MODEL, messages=[{"role": "user", "content": [{"text": '{"conversation_id": 1001}'}]}])
    client.close()
    assert caught.value.response["ResponseMetadata"]["HTTPStatusCode"] == shape.metadata["error"]["httpStatusCode"]
    assert caught.value.response["Error"]["Message"] == ERRORS[name][1]
    assert len(calls(bedrock)) == 1


def test_a_hang_ends_in_a_read_timeout_after_one_billed_request(bedrock: StandIn) -> None:
    script(bedrock, _1001=[{"fault": "hang", "times": 1}])
    with pytest.raises(ReadTimeoutError):
        ask(bedrock, read_timeout=0.2)
    (call,) = calls(bedrock)
    assert (call["status"], call["accepted"], call["fault"]) == (None, True, "hang")
    assert ask(bedrock)["stopReason"] == "end_turn"


def test_a_trickling_answer_begins_and_goes_on_without_an_end(bedrock: StandIn) -> None:
    script(bedrock, _1001=[{"fault": "trickle", "times": 1}])
    body = {"messages": [{"role": "user", "content": [{"text": '{"conversation_id": 1001}'}]}]}
    request = urllib.request.Request(
        f"{bedrock.url}/model/{MODEL}/converse", json.dumps(body).encode(), {"Authorization": "any"}, method="POST"
    )
    with urllib.request.urlopen(request, timeout=2) as answer:
        assert answer.status == 200
        assert answer.read(2) == b"  "
    (call,) = calls(bedrock)
    assert (call["status"], call["accepted"], call["fault"]) == (None, True, "trickle")


def test_a_dropped_connection_is_one_billed_request_without_an_answer(bedrock: StandIn) -> None:
    script(bedrock, _1001=[{"fault": "drop"}])
    with pytest.raises(ConnectionClosedError):
        ask(bedrock)
    assert [(call["status"], call["accepted"]) for call in calls(bedrock)] == [(None, True)]


@pytest.mark.parametrize(
    ("fault", "stop_reason", "has_text"),
    [("empty", "end_turn", False), ("cut", "max_tokens", True), ("filtered", "content_filtered", False)],
)
def test_a_useless_answer_is_billed_like_a_good_one(
    bedrock: StandIn, fault: str, stop_reason: str, has_text: bool
) -> None:
    script(bedrock, _1001=[{"fault": fault}])
    answer = ask(bedrock)
    assert answer["stopReason"] == stop_reason
    assert bool(answer["output"]["message"]["content"][0]["text"]) is has_text
    assert answer["usage"]["inputTokens"] > 0
    assert calls(bedrock)[0]["accepted"]


def test_a_scripted_answer_replaces_the_text(bedrock: StandIn) -> None:
    script(bedrock, _1001=[{"fault": "cut", "answer": "The customer wan"}])
    assert ask(bedrock)["output"]["message"]["content"][0]["text"] == "The customer wan"


@pytest.mark.parametrize(
    ("messages", "complaint"),
    [
        ([{"role": "assistant", "content": [{"text": "hello"}]}], "must start with a user message"),
        ([{"role": "user", "content": [{"text": "a"}]}, {"role": "user", "content": [{"text": "b"}]}], "alternate"),
        ([{"role": "user", "content": [{"text": "  "}]}], "must not be blank"),
    ],
)
def test_a_request_that_bedrock_refuses_is_refused_here(
    bedrock: StandIn, messages: list[dict[str, Any]], complaint: str
) -> None:
    with pytest.raises(ClientError, match=complaint) as caught:
        ask(bedrock, messages=messages)
    assert caught.value.response["Error"]["Code"] == "ValidationException"
    assert not calls(bedrock)[0]["accepted"]


def test_an_unsigned_request_is_refused(bedrock: StandIn) -> None:
    request = urllib.request.Request(f"{bedrock.url}/model/{MODEL}/converse", data=b"{}", method="POST")
    with pytest.raises(urllib.error.HTTPError) as caught, urllib.request.urlopen(request, timeout=5):
        pass
    assert caught.value.code == 403
    assert caught.value.headers["x-amzn-ErrorType"].startswith("AccessDeniedException")
    caught.value.close()
