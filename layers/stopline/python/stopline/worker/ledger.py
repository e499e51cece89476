"""What an attempt tells the queue while it runs, and what is known of it from that."""

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

from stopline.errors import Refused
from stopline.errortext import clean
from stopline.store.worker import WorkerStore

MOST_USD = Decimal(999_999)
"""What one attempt can have cost at most; more is taken for an error."""


class Ledger(Protocol):
    """The job's line to the queue. In a child it leads through the supervisor, inline straight to the database."""

    def start_effect(self) -> None:
        """Stamps the start of the effect; returns when the database has it. Raises LeaseLost."""

    def count_step(self) -> str:
        """Counts an agent's step: "ok", "step_limit" or "budget". Raises LeaseLost."""

    def save_checkpoint(self, text: str) -> None:
        """Saves a checkpoint (JSON text). Raises LeaseLost."""

    def report_cost(self, usd: Decimal, calls: int) -> None:
        """Reports what the attempt has cost so far, in all."""

    def used_client(self, service: str) -> None:
        """Says that the kind uses an SDK service."""

    def note(self, text: str) -> None:
        """Writes a line to the log."""


@dataclass(slots=True)
class StoreLedger:
    """The supervisor's side. It outlives a child, so a cost that was reported survives the crash."""

    store: WorkerStore
    job_id: int
    fence: int
    usd: Decimal | None = None
    calls: int = 0
    steps: int = 0
    touched: bool = False
    services: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    def start_effect(self) -> None:
        self.store.start_effect(self.job_id, self.fence)
        self.touched = True

    def count_step(self) -> str:
        answer = self.store.count_step(self.job_id, self.fence, self.steps + 1)
        self.touched = True
        if answer.status == "ok":
            self.steps += 1
        return str(answer.status)

    def save_checkpoint(self, text: str) -> None:
        self.store.save_checkpoint(self.job_id, self.fence, text)
        self.touched = True

    def report_cost(self, usd: Decimal, calls: int) -> None:
        self.usd = usd
        self.calls = calls

    def used_client(self, service: str) -> None:
        self.services.add(service)

    def note(self, text: str) -> None:
        if len(self.notes) < 20:
            self.notes.append(clean(text))


@dataclass(slots=True)
class CheckLedger(StoreLedger):
    """The supervisor's side of a question to a receiver: it only asks, so what an attempt writes down is refused."""

    def start_effect(self) -> None:
        raise self._refusal("effect")

    def count_step(self) -> str:
        raise self._refusal("steps")

    def save_checkpoint(self, text: str) -> None:
        raise self._refusal("save_checkpoint")

    def report_cost(self, usd: Decimal, calls: int) -> None:
        self.note(f"reconcile(job) reported a cost of ${usd} and {calls} calls in all: noted here, booked nowhere")

    def _refusal(self, method: str) -> Refused:
        return Refused(
            f"job {self.job_id}: reconcile(job) only asks the receiver and must change nothing: "
            f"job.{method}() belongs in run(job)"
        )
