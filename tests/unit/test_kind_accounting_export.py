"""accounting_export against the connector's stand-in."""

import json
import tomllib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import urllib3

from stopline import Permanent, Uncertain
from stopline.classify import classify
from stopline.http import HttpError
from stopline.states import Outcome
from stopline.worker.loading import KindCode
from stopline.worker.question import answer_of, run_check
from stopline_cli.standins.connector import ConnectorService
from stopline_cli.standins.server import StandIn
from stopline_cli.standins.service import Answer, Reply, Request
from tests.unit.handmade_job import JOBS, SAMPLES, HandmadeJob, kind_module

KIND = "accounting_export"
REFERENCE = "5f0c-17"


def payload(batch: str = "north-w48") -> dict[str, Any]:
    """The payload that billing.take_batch makes of the sample invoices of one batch."""
    sample = json.loads((SAMPLES / "invoices.json").read_text(encoding="utf-8"))
    invoices = [
        {**{name: entry[name] for name in ("id", "customer", "amount", "currency")}, "issued_on": "2026-11-20"}
        for entry in sample
        if entry["batch"] == batch
    ]
    return {"batch": batch, "invoice_ids": [invoice["id"] for invoice in invoices], "invoices": invoices}


@pytest.fixture
def connector() -> Iterator[StandIn]:
    with StandIn(ConnectorService()) as standin:
        yield standin


def job(connector: StandIn, **changes: Any) -> HandmadeJob:
    made = HandmadeJob(
        kind=KIND, payload=payload(), effect_key=REFERENCE, environment={"ACCOUNTING_URL": connector.url + "/"}
    )
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def run(made: HandmadeJob) -> dict[str, Any]:
    result: dict[str, Any] = kind_module(KIND).run(made)
    return result


def reconcile(made: HandmadeJob) -> str:
    answer: str = kind_module(KIND).reconcile(made)
    return answer


def asked(made: HandmadeJob) -> tuple[str, str]:
    """What the worker records of the question: the answer and its reason."""
    code = KindCode(KIND, run, reconcile)
    answer, reason = answer_of(run_check(code, made))  # type: ignore[arg-type]
    return str(answer), reason


def script(connector: StandIn, **step: object) -> None:
    connector.service.script.replace({"INV-20410": [step]})


def outcome(made: HandmadeJob) -> Outcome:
    """How the worker records this attempt when it fails."""
    with pytest.raises(Exception) as caught:  # noqa: PT011 - any failure; its class is what classify looks at
        run(made)
    return classify(caught.value, idempotent=False).outcome


def test_a_batch_is_sent_under_the_effect_key_and_the_result_names_the_connectors_id(connector: StandIn) -> None:
    made = job(connector)
    assert run(made) == {"batch_id": "B-000001", "reference": REFERENCE, "invoices": 3, "sent_before": False}
    assert made.said == [("effect", None)]
    assert connector.service.state()["batches"][REFERENCE]["invoice_ids"] == payload()["invoice_ids"]


def test_the_same_job_sent_again_books_nothing_twice(connector: StandIn) -> None:
    run(job(connector))
    assert run(job(connector, attempt=2))["sent_before"] is True
    assert connector.service.state()["accepted"] == 1


def test_the_effect_is_stamped_before_anything_is_on_the_wire(connector: StandIn) -> None:
    made = job(connector)

    def no_lease() -> None:
        raise RuntimeError("the lease is lost")

    made.effect = no_lease  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        run(made)
    assert connector.service.state()["total"] == 0


@pytest.mark.parametrize("fault", ["accept_then_hang", "accept_then_drop", "hang", "drop", "server_error"])
def test_a_send_whose_answer_was_lost_is_uncertain_and_one_request(connector: StandIn, fault: str) -> None:
    script(connector, fault=fault)
    assert outcome(job(connector, wire_seconds=0.3)) is Outcome.UNCERTAIN
    assert connector.service.state()["total"] == 1


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("throttle", Outcome.TRANSIENT),
        ("unavailable", Outcome.TRANSIENT),
        ("reject", Outcome.PERMANENT),
    ],
)
def test_a_batch_that_the_connector_refused_is_known_not_to_be_booked(
    connector: StandIn, fault: str, expected: Outcome
) -> None:
    script(connector, fault=fault, retry_after=20)
    assert outcome(job(connector)) is expected


def test_a_refusal_keeps_the_pause_that_the_connector_asked_for(connector: StandIn) -> None:
    script(connector, fault="throttle", retry_after=20)
    with pytest.raises(HttpError) as caught:
        run(job(connector))
    assert (caught.value.status, caught.value.retry_after) == (429, 20)


def test_a_connector_that_cannot_be_reached_has_taken_nothing() -> None:
    with StandIn(ConnectorService()) as gone:
        url = gone.url
    made = HandmadeJob(payload=payload(), effect_key=REFERENCE, environment={"ACCOUNTING_URL": url})
    assert outcome(made) is Outcome.TRANSIENT


class Odd(ConnectorService):
    """A connector that answers in a way that its interface does not have."""

    def __init__(self, status: int, body: object, **headers: str) -> None:
        super().__init__()
        self.reply = Reply(status, body, headers)

    def handle(self, request: Request) -> Answer:
        self.ledger.open("odd", request.method, authorization=request.headers.get("authorization"))
        return self.reply


def test_a_status_that_does_not_say_whether_the_batch_was_taken_is_uncertain() -> None:
    with StandIn(Odd(202, {})) as odd, pytest.raises(Uncertain, match="202"):
        run(job(odd))


def test_a_batch_that_was_taken_stays_a_success_when_the_answer_is_unreadable() -> None:
    with StandIn(Odd(201, "odd")) as odd:
        assert run(job(odd))["batch_id"] is None


def test_a_redirect_is_not_followed_with_a_batch_in_hand(connector: StandIn) -> None:
    with StandIn(Odd(307, {}, Location=connector.url + "/batches")) as odd, pytest.raises(HttpError, match="307"):
        run(job(odd))
    assert connector.service.state()["total"] == 0


def test_a_token_is_sent_only_if_there_is_one() -> None:
    with StandIn(Odd(201, {})) as odd:
        run(job(odd))
        run(job(odd, environment={"ACCOUNTING_URL": odd.url, "ACCOUNTING_TOKEN": "t0"}))
        seen = [call["details"]["authorization"] for call in odd.service.state()["calls"]]
    assert seen == [None, "Bearer t0"]


@pytest.mark.parametrize(("fault", "answer"), [("accept_then_hang", "applied"), ("hang", "not_applied")])
def test_the_connector_is_asked_what_became_of_a_send_that_timed_out(
    connector: StandIn, fault: str, answer: str
) -> None:
    script(connector, fault=fault, times=1)
    made = job(connector, wire_seconds=0.3)
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        run(made)
    assert reconcile(made) == answer


@pytest.mark.parametrize(
    ("fault", "told"),
    [
        ("hang", "ReadTimeoutError"),
        ("drop", "ProtocolError"),
        ("unavailable", "HTTP 503"),
        ("throttle", "HTTP 429"),
        ("server_error", "HTTP 500"),
    ],
)
def test_a_question_without_an_answer_leaves_the_outcome_unknown_and_says_why(
    connector: StandIn, fault: str, told: str
) -> None:
    run(job(connector))
    connector.service.script.replace({"lookup:*": [{"fault": fault}]})
    answer, reason = asked(job(connector, wire_seconds=0.3))
    assert answer == "unknown"
    assert told in reason


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (404, {"message": "no such page"}),
        (404, "gateway"),
        (200, {"invoice_ids": ["INV-1"]}),
        (200, []),
        (401, {"error": "not_found"}),
    ],
)
def test_an_answer_that_is_not_the_connectors_own_is_no_evidence(status: int, body: object) -> None:
    with StandIn(Odd(status, body)) as odd:
        assert asked(job(odd))[0] == "unknown"


def change(path: str, value: object) -> Callable[[dict[str, Any]], None]:
    def apply(document: dict[str, Any]) -> None:
        if path in document:
            document[path] = value
        else:
            document["invoices"][1][path] = value

    return apply


@pytest.mark.parametrize(
    ("broken", "complaint"),
    [
        (change("batch", ""), "payload.batch: must be"),
        (change("invoices", []), "payload.invoices: must be a list of 1 to 500"),
        (change("invoices", ["x"]), r"payload.invoices\[0\]: must be an object"),
        (change("invoice_ids", ["INV-20410"]), "payload.invoice_ids: must list"),
        (change("id", "INV-20410"), "an id appears twice"),
        (change("amount", 18399.95), r"payload.invoices\[1\].amount: must be text"),
        (change("amount", "18399.9"), r"payload.invoices\[1\].amount: must be a decimal"),
        (change("amount", "１２.50"), r"payload.invoices\[1\].amount: must be a decimal"),
        (change("currency", "eur"), r"payload.invoices\[1\].currency: must be three"),
        (change("issued_on", "20 Feb"), r"payload.invoices\[1\].issued_on: must be a date"),
    ],
)
def test_a_wrong_payload_is_permanent_and_sends_nothing(
    connector: StandIn, broken: Callable[[dict[str, Any]], None], complaint: str
) -> None:
    document = payload()
    broken(document)
    made = job(connector, payload=document)
    with pytest.raises(Permanent, match=complaint):
        run(made)
    assert made.said == []
    assert connector.service.state()["total"] == 0


@pytest.mark.parametrize("url", ["", "accounting.example.com", "ftp://accounting.example.com"])
def test_a_missing_or_wrong_address_names_the_variable(connector: StandIn, url: str) -> None:
    with pytest.raises(ValueError, match="ACCOUNTING_URL: must be an http or https address"):
        run(job(connector, environment={"ACCOUNTING_URL": url}))


def test_its_policy_is_stamped_and_not_idempotent() -> None:
    policy = tomllib.loads((JOBS / KIND / "policy.toml").read_text(encoding="utf-8"))
    assert (policy["idempotent"], policy["effect"]) == (False, "stamped")
