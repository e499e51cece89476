"""A batch of invoices as the accounting connector stores it, and the rules that a posted one must satisfy."""

import json
import re
from dataclasses import dataclass, replace
from typing import Any

_AMOUNT = re.compile(r"-?\d{1,12}\.\d{2}")
_FIELDS = ("id", "customer", "amount", "currency", "issued_on")


class InvalidBatch(ValueError):
    """A posted batch breaks a rule; the message names the field and the rule."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch with its content in one canonical spelling. `number` is 0 until it is stored."""

    reference: str
    invoice_ids: list[str]
    content: str
    number: int = 0

    def numbered(self, number: int) -> "Batch":
        """The same batch under the connector's own number."""
        return replace(self, number=number)

    def as_json(self) -> dict[str, Any]:
        """How the connector shows it."""
        return {
            "batch_id": f"B-{self.number:06d}",
            "reference": self.reference,
            "status": "accepted",
            "invoice_ids": self.invoice_ids,
        }


def parse_batch(body: bytes, key: str | None) -> Batch:
    """Read a posted batch; raises InvalidBatch."""
    try:
        posted = json.loads(body)
    except ValueError as error:
        raise InvalidBatch(f"body: must be JSON ({error})") from None
    if not isinstance(posted, dict):
        raise InvalidBatch("body: must be an object")
    reference = posted.get("reference")
    if not isinstance(reference, str) or not reference:
        raise InvalidBatch("reference: must be text")
    if key != reference:
        raise InvalidBatch("Idempotency-Key: must equal the reference")
    invoices = posted.get("invoices")
    if not isinstance(invoices, list) or not invoices:
        raise InvalidBatch("invoices: must be a list of at least one")
    for position, invoice in enumerate(invoices):
        _check(f"invoices[{position}]", invoice)
    ids = [invoice["id"] for invoice in invoices]
    if len(set(ids)) < len(ids):
        raise InvalidBatch("invoices: an id appears twice")
    return Batch(reference, ids, json.dumps(posted, sort_keys=True))


def _check(where: str, invoice: object) -> None:
    if not isinstance(invoice, dict):
        raise InvalidBatch(f"{where}: must be an object")
    for name in _FIELDS:
        if not isinstance(invoice.get(name), str) or not invoice[name]:
            raise InvalidBatch(f"{where}.{name}: must be text")
    if not _AMOUNT.fullmatch(invoice["amount"]):
        raise InvalidBatch(f"{where}.amount: must be a decimal number with two places, as text")
