"""The accounting connector's stand-in, as a plain HTTP client meets it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import urllib3

from stopline_cli.standins.connector import ConnectorService
from stopline_cli.standins.server import StandIn


@pytest.fixture
def connector() -> Iterator[StandIn]:
    with StandIn(ConnectorService()) as standin:
        yield standin


@pytest.fixture
def http() -> Iterator[urllib3.PoolManager]:
    with urllib3.PoolManager(retries=False, timeout=urllib3.Timeout(total=5)) as pool:
        yield pool


def batch(reference: str = "ref/1", invoice: str = "INV-1", **changes: str) -> dict[str, Any]:
    line = {"id": invoice, "customer": "Kafé", "amount": "12.50", "currency": "EUR", "issued_on": "2026-02-20"}
    return {"reference": reference, "batch": "north", "invoices": [line | changes]}


def post(
    http: urllib3.PoolManager, standin: StandIn, body: object, key: str = "ref/1", seconds: float = 5
) -> urllib3.BaseHTTPResponse:
    headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
    return http.request(
        "POST", f"{standin.url}/batches", body=json.dumps(body).encode(), headers=headers, timeout=seconds
    )


def script(standin: StandIn, steps: dict[str, object]) -> None:
    standin.service.script.replace(steps)


def state(standin: StandIn) -> dict[str, Any]:
    return standin.service.state()


def test_a_batch_is_stored_once_and_a_replay_of_it_is_told_apart(connector: StandIn, http: urllib3.PoolManager) -> None:
    first, again = post(http, connector, batch()), post(http, connector, batch())
    assert (first.status, again.status) == (201, 200)
    assert first.json() == again.json()
    assert first.json()["batch_id"] == "B-000001"
    assert state(connector)["batches"]["ref/1"]["invoice_ids"] == ["INV-1"]
    assert state(connector)["by_marker"] == {"INV-1": {"calls": 2, "accepted": 1}}


def test_other_content_under_the_same_reference_is_a_conflict(connector: StandIn, http: urllib3.PoolManager) -> None:
    post(http, connector, batch())
    answer = post(http, connector, batch(amount="99.00"))
    assert (answer.status, answer.json()["error"]) == (409, "reference_conflict")


@pytest.mark.parametrize(
    ("body", "key", "complaint"),
    [
        (batch(), "another", "Idempotency-Key: must equal"),
        ([], "ref/1", "body: must be an object"),
        (batch() | {"invoices": []}, "ref/1", "invoices: must be a list of at least one"),
        (batch(amount="12.5"), "ref/1", r"invoices[0].amount: must be a decimal"),
        (batch(customer=""), "ref/1", r"invoices[0].customer: must be text"),
        (batch() | {"invoices": batch()["invoices"] * 2}, "ref/1", "an id appears twice"),
    ],
)
def test_an_invalid_batch_is_refused_with_the_field_and_the_rule(
    connector: StandIn, http: urllib3.PoolManager, body: object, key: str, complaint: str
) -> None:
    answer = post(http, connector, body, key)
    assert answer.status == 422
    assert complaint in answer.json()["message"]
    assert state(connector)["batches"] == {}


def test_a_reference_can_be_looked_up(connector: StandIn, http: urllib3.PoolManager) -> None:
    unknown = http.request("GET", f"{connector.url}/batches/ref%2F1")
    assert (unknown.status, unknown.json()["error"]) == (404, "not_found")
    post(http, connector, batch())
    assert http.request("GET", f"{connector.url}/batches/ref%2F1").json()["reference"] == "ref/1"


def test_accept_then_hang_stores_the_batch_and_answers_nobody(connector: StandIn, http: urllib3.PoolManager) -> None:
    script(connector, {"INV-1": [{"fault": "accept_then_hang", "times": 1}]})
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        post(http, connector, batch(), seconds=0.2)
    assert list(state(connector)["batches"]) == ["ref/1"]
    (call,) = state(connector)["calls"]
    assert (call["fault"], call["status"], call["accepted"]) == ("accept_then_hang", None, True)
    assert post(http, connector, batch()).status == 200


@pytest.mark.parametrize(("fault", "stored"), [("drop", 0), ("accept_then_drop", 1)])
def test_a_dropped_connection_looks_the_same_whether_or_not_the_batch_is_stored(
    connector: StandIn, http: urllib3.PoolManager, fault: str, stored: int
) -> None:
    script(connector, {"INV-1": [{"fault": fault, "times": 1}]})
    with pytest.raises(urllib3.exceptions.ProtocolError):
        post(http, connector, batch())
    assert len(state(connector)["batches"]) == stored


def test_a_hang_stores_nothing(connector: StandIn, http: urllib3.PoolManager) -> None:
    script(connector, {"ref/1": [{"fault": "hang", "times": 1}]})
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        post(http, connector, batch(), seconds=0.2)
    assert state(connector)["batches"] == {}
    assert state(connector)["accepted"] == 0


@pytest.mark.parametrize(
    ("fault", "status", "pause"),
    [("throttle", 429, "30"), ("unavailable", 503, "30"), ("server_error", 500, "30"), ("reject", 422, "30")],
)
def test_a_refusal_stores_nothing(
    connector: StandIn, http: urllib3.PoolManager, fault: str, status: int, pause: str
) -> None:
    script(connector, {"INV-1": [{"fault": fault, "times": 1, "retry_after": 30}]})
    refused = post(http, connector, batch())
    assert (refused.status, refused.headers["Retry-After"]) == (status, pause)
    assert state(connector)["batches"] == {}
    assert post(http, connector, batch()).status == 201


def test_look_ups_follow_a_script_of_their_own(connector: StandIn, http: urllib3.PoolManager) -> None:
    script(connector, {"lookup:*": [{"fault": "unavailable", "times": 1}]})
    assert post(http, connector, batch()).status == 201
    assert http.request("GET", f"{connector.url}/batches/ref%2F1").status == 503
    assert http.request("GET", f"{connector.url}/batches/ref%2F1").status == 200
