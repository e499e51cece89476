"""The accounting connector's HTTP interface: one request on the wire per call, never a retry."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

import urllib3

from stopline import Uncertain
from stopline.http import raise_for_status

from .batch import Batch

URL = "ACCOUNTING_URL"
TOKEN = "ACCOUNTING_TOKEN"
_CONNECT_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Connector:
    """Where the connector is. `timeout` is seconds for one request, connecting included."""

    url: str
    token: str | None
    timeout: float

    @classmethod
    def from_environment(cls, environment: Mapping[str, str], timeout: float) -> "Connector":
        """The connector of this installation. Raises ValueError naming the variable and the rule."""
        url = environment.get(URL, "").strip().rstrip("/")
        if not url.startswith(("https://", "http://")):
            raise ValueError(
                f"{URL}: must be an http or https address, not {url!r}; set it in the function's environment"
            )
        return cls(url, environment.get(TOKEN, "").strip() or None, timeout)

    def send(self, batch: Batch) -> dict[str, object]:
        """Post the batch; returns the connector's id for it.

        Raises HttpError when it was refused and Uncertain when the answer does not say whether it was taken.
        """
        body = json.dumps(batch.as_json(), ensure_ascii=False).encode()
        headers = {"Content-Type": "application/json", "Idempotency-Key": batch.reference}
        response = self._request("POST", "/batches", headers, body)
        raise_for_status(response)
        if response.status not in (200, 201):
            raise Uncertain(f"the connector answered {response.status}, which does not say whether it took the batch")
        # From here on the batch is taken. An unreadable body only costs us the connector's id for it.
        return {
            "batch_id": _field(response.data, "batch_id"),
            "reference": batch.reference,
            "invoices": len(batch.invoices),
            "sent_before": response.status == 200,
        }

    def ask(self, batch: Batch) -> str:
        """Whether the connector holds the batch: "applied" or "not_applied".

        Raises what kept it from saying so, which leaves the outcome unknown and stands with the question.
        """
        response = self._request("GET", f"/batches/{quote(batch.reference, safe='')}", {}, None)
        if response.status == 404 and _field(response.data, "error") == "not_found":
            return "not_applied"
        raise_for_status(response)
        if response.status != 200 or _field(response.data, "invoice_ids") != batch.invoice_ids:
            # Other invoices under our reference are nothing that a program should decide on.
            raise Uncertain(f"the connector answered {response.status} with other invoices than this batch's")
        return "applied"

    def _request(
        self, method: str, path: str, headers: dict[str, str], body: bytes | None
    ) -> "urllib3.BaseHTTPResponse":
        if self.token:
            headers = headers | {"Authorization": f"Bearer {self.token}"}
        timeout = urllib3.Timeout(connect=min(_CONNECT_SECONDS, self.timeout / 4), total=self.timeout)
        with urllib3.PoolManager(timeout=timeout) as pool:
            # A redirect is not followed: it would send the batch again, to another place.
            return pool.request(method, self.url + path, headers=headers, body=body, retries=False, redirect=False)


def _field(body: bytes, name: str) -> object:
    """One field of a JSON object; None if the body is none or lacks it."""
    try:
        document = json.loads(body)
    except ValueError:
        return None
    return document.get(name) if isinstance(document, dict) else None
