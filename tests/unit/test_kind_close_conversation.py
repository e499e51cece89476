"""close_conversation against the Bedrock stand-in. Its statements run on a real database in tests/sql."""

import json
import tomllib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError, ReadTimeoutError

from stopline import Permanent, Transient
from stopline_cli.standins.bedrock import BedrockService
from stopline_cli.standins.server import StandIn
from tests.unit.handmade_job import JOBS, SAMPLES, HandmadeJob, kind_module

KIND = "close_conversation"
POLICY = tomllib.loads((JOBS / KIND / "policy.toml").read_text(encoding="utf-8"))
ENVIRONMENT: dict[str, str] = POLICY["access"]["environment"]
SAMPLE = {entry["id"]: entry for entry in json.loads((SAMPLES / "conversations.json").read_text(encoding="utf-8"))}
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Desk:
    """The support desk's two tables for one conversation, as a connection gives them to the kind's statements."""

    def __init__(self, sample: Mapping[str, Any] | None) -> None:
        self.sample = sample
        self.status = sample["status"] if sample else ""
        self.last_message_at = NOW
        self.summary: str | None = None

    def execute(self, statement: str, values: Any) -> Any:
        if "update support.conversations" in statement:
            matches = self.status == "open" and values["last_message_at"] == self.last_message_at
            if matches:
                self.status, self.summary = "closed", values["summary"]
            return SimpleNamespace(rowcount=int(matches))
        if self.sample is None:
            return SimpleNamespace(fetchone=lambda: None)
        if "from support.messages" in statement:
            rows = [
                (said["role"], said["body"], NOW - timedelta(minutes=said["minutes_before_last"]))
                for said in self.sample["messages"]
            ]
            return SimpleNamespace(fetchall=lambda: rows)
        row = (self.sample["id"], self.sample["business"], self.sample["channel"], self.status, self.last_message_at)
        return SimpleNamespace(fetchone=lambda: row)


@pytest.fixture
def bedrock() -> Iterator[StandIn]:
    with StandIn(BedrockService()) as standin:
        yield standin


def job(bedrock: StandIn, conversation: int = 1001, **changes: Any) -> HandmadeJob:
    made = HandmadeJob(
        kind=KIND,
        payload={"conversation_id": conversation},
        environment=ENVIRONMENT,
        bedrock_url=bedrock.url,
        database=Desk(SAMPLE.get(conversation)),
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def run(made: HandmadeJob) -> dict[str, Any]:
    result: dict[str, Any] = kind_module(KIND).run(made)
    return result


def calls(bedrock: StandIn) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = bedrock.service.state()["calls"]
    return found


def test_an_idle_conversation_is_summarised_paid_for_and_closed(bedrock: StandIn) -> None:
    made = job(bedrock, 1003)
    result = run(made)
    assert result["closed"] is True
    assert made.database.status == "closed"
    assert "1003" in made.database.summary
    price_in, price_out = Decimal("3.00"), Decimal("15.00")
    expected = (result["input_tokens"] * price_in + result["output_tokens"] * price_out) / 1_000_000
    assert made.spent == expected.quantize(Decimal("0.000001"))
    json.dumps(result)


def test_the_call_names_the_job_and_the_attempt_that_caused_it(bedrock: StandIn) -> None:
    run(job(bedrock, attempt=3))
    (call,) = calls(bedrock)
    assert call["marker"] == "1001"
    assert call["details"] == {
        "model_id": ENVIRONMENT["CLOSE_CONVERSATION_MODEL"],
        "metadata": {"stopline_kind": KIND, "stopline_job": "17", "stopline_attempt": "3"},
    }


def test_a_conversation_that_is_closed_already_costs_no_call(bedrock: StandIn) -> None:
    made = job(bedrock)
    run(made)
    made.said.clear()
    assert run(made) == {"closed": False, "why": "it was closed already"}
    assert len(calls(bedrock)) == 1
    assert made.spent == 0


def test_a_conversation_that_changed_while_the_model_was_asked_stays_open(bedrock: StandIn) -> None:
    made = job(bedrock)
    ask = made.client

    def ask_while_a_message_arrives(service: str) -> Any:
        made.database.last_message_at += timedelta(minutes=1)
        return ask(service)

    made.client = ask_while_a_message_arrives  # type: ignore[method-assign]
    result = run(made)
    assert (result["closed"], result["why"]) == (False, "it changed while the model was asked")
    assert made.database.status == "open"
    assert made.spent


@pytest.mark.parametrize(
    "payload", [None, {}, [], {"conversation_id": "1001"}, {"conversation_id": True}, {"conversation_id": 2**63}]
)
def test_a_payload_that_names_no_conversation_is_permanent(bedrock: StandIn, payload: object) -> None:
    made = job(bedrock, payload=payload)
    with pytest.raises(Permanent, match="conversation_id"):
        run(made)
    assert calls(bedrock) == []
    assert made.spent == 0


def test_a_conversation_that_does_not_exist_is_permanent(bedrock: StandIn) -> None:
    made = job(bedrock, 404)
    with pytest.raises(Permanent, match="conversation 404 does not exist"):
        run(made)
    assert calls(bedrock) == []
    assert made.spent == 0


@pytest.mark.parametrize(
    ("fault", "error", "message"),
    [
        ("empty", Transient, "has no text"),
        ("cut", Transient, "not complete: stopReason max_tokens"),
        ("filtered", Permanent, "stopReason content_filtered"),
    ],
)
def test_a_useless_answer_closes_nothing_and_is_paid_for(
    bedrock: StandIn, fault: str, error: type[Exception], message: str
) -> None:
    bedrock.service.script.replace({"1001": [{"fault": fault}]})
    made = job(bedrock)
    with pytest.raises(error, match=message):
        run(made)
    assert made.database.status == "open"
    assert made.spent


def test_a_throttled_call_is_one_request_and_reported_as_free(bedrock: StandIn) -> None:
    bedrock.service.script.replace({"1001": [{"fault": "throttle", "retry_after": 5}]})
    made = job(bedrock)
    with pytest.raises(ClientError, match="ThrottlingException"):
        run(made)
    assert made.spent == 0
    assert len(calls(bedrock)) == 1


@pytest.mark.parametrize("error", ["InternalServerException", "ModelErrorException", "ServiceUnavailableException"])
def test_an_error_that_may_have_been_billed_reports_no_cost_so_that_the_reservation_stands(
    bedrock: StandIn, error: str
) -> None:
    bedrock.service.script.replace({"1001": [{"fault": "error", "error": error}]})
    made = job(bedrock)
    with pytest.raises(ClientError, match=error):
        run(made)
    assert made.spent is None


def test_a_call_that_hangs_is_one_request_and_reports_no_cost(bedrock: StandIn) -> None:
    bedrock.service.script.replace({"1001": [{"fault": "hang"}]})
    made = job(bedrock, wire_seconds=0.2)
    with pytest.raises(ReadTimeoutError):
        run(made)
    assert made.spent is None
    assert len(calls(bedrock)) == 1


@pytest.mark.parametrize("text", ["Done.\x00", "Done.\ud83d"])
def test_an_answer_with_characters_that_no_column_holds_is_stored_without_them(text: str) -> None:
    """FI-01: NUL and lone surrogates, here in the text that a model returned."""
    read_summary = kind_module(KIND, "answer").read_summary
    response = {"stopReason": "end_turn", "output": {"message": {"content": [{"text": text}]}}}
    summary = read_summary(response)
    assert summary.startswith("Done.")
    assert "\x00" not in summary
    summary.encode()


def test_thoughts_of_the_model_are_no_part_of_the_summary() -> None:
    blocks = [{"reasoningContent": {"reasoningText": {"text": "hm"}}}, {"text": " A summary. "}]
    response = {"stopReason": "end_turn", "output": {"message": {"content": blocks}}}
    assert kind_module(KIND, "answer").read_summary(response) == "A summary."


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("CLOSE_CONVERSATION_MODEL", " "),
        ("CLOSE_CONVERSATION_INPUT_USD", "three"),
        ("CLOSE_CONVERSATION_INPUT_USD", "NaN"),
        ("CLOSE_CONVERSATION_OUTPUT_USD", "-1"),
        ("CLOSE_CONVERSATION_OUTPUT_USD", ""),
    ],
)
def test_a_wrong_setting_is_named_before_the_model_is_asked(bedrock: StandIn, variable: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"{variable}: must"):
        run(job(bedrock, environment=ENVIRONMENT | {variable: value}))
    assert calls(bedrock) == []
