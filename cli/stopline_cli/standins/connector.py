"""Stand-in for the accounting connector that `accounting_export` talks to.

    POST /batches                Idempotency-Key: <reference>; body {"reference", "batch", "invoices": [{"id",
                                 "customer", "amount", "currency", "issued_on"}]}, amounts as strings.
                                 201 stored, 200 stored before under this reference, 409 other content under this
                                 reference, 422 invalid; all with a JSON body.
    GET  /batches/<reference>    200 with the stored batch, 404 if there is none.

A post's markers are its reference and its invoices' ids; a look-up's are "lookup:<reference>", "lookup:<invoice id>"
for the invoices stored under it, and "lookup:*". What is recorded as the marker is the first invoice's id. Faults:

    throttle          429, with `retry_after` as a Retry-After header if given
    unavailable       503, likewise
    server_error      500
    reject            422
    hang              no answer until the client gives up; nothing is stored
    drop              the connection is closed without an answer; nothing is stored
    accept_then_hang  the batch is stored, then no answer until the client gives up
    accept_then_drop  the batch is stored, then the connection is closed without an answer
"""

import re
import threading
from typing import Any
from urllib.parse import unquote

from stopline_cli.standins.batches import Batch, InvalidBatch, parse_batch
from stopline_cli.standins.ledger import Call
from stopline_cli.standins.process import main
from stopline_cli.standins.script import EVERY_MARKER, Step
from stopline_cli.standins.service import Answer, Drop, Reply, Request, Service, Silence, closed, retry_after_header

_LOOKUP = re.compile(r"/batches/([^/]+)")
_REFUSALS = {
    "throttle": (429, "too_many_requests"),
    "unavailable": (503, "unavailable"),
    "server_error": (500, "server_error"),
    "reject": (422, "invalid_batch"),
}


class ConnectorService(Service):
    """Batches by reference."""

    faults = frozenset({*_REFUSALS, "hang", "drop", "accept_then_hang", "accept_then_drop"})

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._batches: dict[str, Batch] = {}

    def handle(self, request: Request) -> Answer:
        """Answer one post or look-up."""
        lookup = _LOOKUP.fullmatch(request.path)
        if request.method == "GET" and lookup is not None:
            return self._look_up(unquote(lookup[1]))
        if request.method == "POST" and request.path == "/batches":
            return self._post(request)
        return Reply(404, {"error": "not_found", "message": f"no such page: {request.method} {request.path}"})

    def state(self) -> dict[str, Any]:
        """The calls, and the batches that are stored, by reference."""
        with self._lock:
            batches = {reference: batch.as_json() for reference, batch in self._batches.items()}
        return super().state() | {"batches": batches}

    def reset(self) -> None:
        """Forget calls and batches and start the script again."""
        super().reset()
        with self._lock:
            self._batches = {}

    def _post(self, request: Request) -> Answer:
        try:
            batch = parse_batch(request.body, request.headers.get("idempotency-key"))
        except InvalidBatch as error:
            call = self.ledger.open("post", "unknown")
            return closed(call, Reply(422, {"error": "invalid_batch", "message": str(error)}))
        call = self.ledger.open("post", batch.invoice_ids[0], reference=batch.reference, invoices=batch.invoice_ids)
        step = self.script.take([batch.reference, *batch.invoice_ids, EVERY_MARKER])
        refused = self._interrupted(call, step)
        if refused is not None:
            return refused
        reply = self._store(call, batch)
        if step and step.fault == "accept_then_hang":
            call.status = None
            return _silence(step)
        if step and step.fault == "accept_then_drop":
            call.status = None
            return Drop()
        return reply

    def _interrupted(self, call: Call, step: Step | None) -> Answer | None:
        """The answer of a fault that comes before anything is stored."""
        if step is None:
            return None
        call.fault = step.fault
        if step.fault in _REFUSALS:
            status, error = _REFUSALS[step.fault]
            reply = Reply(status, {"error": error, "message": "scripted"}, retry_after_header(step.retry_after))
            return closed(call, reply)
        if step.fault == "hang":
            return _silence(step)
        return Drop() if step.fault == "drop" else None

    def _store(self, call: Call, batch: Batch) -> Reply:
        with self._lock:
            stored = self._batches.get(batch.reference)
            if stored is None:
                stored = batch.numbered(len(self._batches) + 1)
                self._batches[batch.reference] = stored
                call.accepted = True
                return closed(call, Reply(201, stored.as_json()))
        if stored.content != batch.content:
            conflict = {"error": "reference_conflict", "message": "this reference holds other content"}
            return closed(call, Reply(409, conflict))
        return closed(call, Reply(200, stored.as_json()))

    def _look_up(self, reference: str) -> Answer:
        with self._lock:
            stored = self._batches.get(reference)
        ids = stored.invoice_ids if stored else []
        call = self.ledger.open("lookup", ids[0] if ids else reference, reference=reference)
        step = self.script.take([f"lookup:{name}" for name in (reference, *ids, EVERY_MARKER)])
        refused = self._interrupted(call, step)
        if refused is not None:
            return refused
        if stored is None:
            return closed(call, Reply(404, {"error": "not_found", "message": "no batch under this reference"}))
        return closed(call, Reply(200, stored.as_json()))


def _silence(step: Step) -> Silence:
    return Silence() if step.seconds is None else Silence(step.seconds)


if __name__ == "__main__":
    main(ConnectorService())
