"""A batch of invoices as its payload carries it: frozen when it was enqueued, amounts as strings.

{"batch": "north-w48", "invoice_ids": ["INV-20410"],
 "invoices": [{"id": "INV-20410", "customer": "Fjordlys Kafé AS", "amount": "1240.00", "currency": "EUR",
               "issued_on": "2026-02-20"}]}
"""

import re
from dataclasses import dataclass
from datetime import date

from stopline import Permanent

MAX_INVOICES = 500
_AMOUNT = re.compile(r"-?[0-9]{1,12}\.[0-9]{2}")
_CURRENCY = re.compile(r"[A-Z]{3}")
_FIELDS = ("id", "customer", "amount", "currency", "issued_on")


@dataclass(frozen=True, slots=True)
class Batch:
    """A checked batch under its reference."""

    reference: str
    name: str
    invoices: tuple[dict[str, str], ...]

    @classmethod
    def from_payload(cls, reference: str, payload: object) -> "Batch":
        """Check a payload. Raises Permanent naming the field and the rule: it would be wrong in every attempt."""
        if not isinstance(payload, dict):
            raise Permanent("payload: must be an object")
        name = payload.get("batch")
        if not isinstance(name, str) or not name:
            raise Permanent("payload.batch: must be the batch's name")
        invoices = payload.get("invoices")
        if not isinstance(invoices, list) or not 0 < len(invoices) <= MAX_INVOICES:
            raise Permanent(f"payload.invoices: must be a list of 1 to {MAX_INVOICES} invoices")
        checked = tuple(_invoice(f"payload.invoices[{n}]", invoice) for n, invoice in enumerate(invoices))
        ids = [invoice["id"] for invoice in checked]
        if len(set(ids)) != len(ids):
            raise Permanent("payload.invoices: an id appears twice")
        if payload.get("invoice_ids") != ids:
            raise Permanent("payload.invoice_ids: must list the ids of payload.invoices in their order")
        return cls(reference, name, checked)

    @property
    def invoice_ids(self) -> list[str]:
        """The ids of the invoices in their order."""
        return [invoice["id"] for invoice in self.invoices]

    def as_json(self) -> dict[str, object]:
        """What is sent."""
        return {"reference": self.reference, "batch": self.name, "invoices": list(self.invoices)}


def _invoice(where: str, value: object) -> dict[str, str]:
    if not isinstance(value, dict):
        raise Permanent(f"{where}: must be an object")
    invoice: dict[str, str] = {}
    for name in _FIELDS:
        text = value.get(name)
        if not isinstance(text, str) or not text:
            raise Permanent(f"{where}.{name}: must be text")
        invoice[name] = text
    if not _AMOUNT.fullmatch(invoice["amount"]):
        raise Permanent(f'{where}.amount: must be a decimal number with two places, such as "12.50"')
    if not _CURRENCY.fullmatch(invoice["currency"]):
        raise Permanent(f"{where}.currency: must be three capital letters")
    try:
        date.fromisoformat(invoice["issued_on"])
    except ValueError:
        raise Permanent(f"{where}.issued_on: must be a date such as 2026-02-20") from None
    return invoice
