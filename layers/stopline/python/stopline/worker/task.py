"""What a process is started for: one attempt of a job, or one question about it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from stopline.store.worker import Check, ClaimedJob, WorkerStore
from stopline.worker.attempt import Ending, run_attempt
from stopline.worker.job import Job
from stopline.worker.ledger import CheckLedger, StoreLedger
from stopline.worker.loading import KindCode
from stopline.worker.question import run_check


@dataclass(frozen=True, slots=True)
class Task:
    """`call` is what happens to the job, in whatever process; `ledger` is the supervisor's side of what the job says.

    `check` is the question's number, None for an attempt.
    """

    job: ClaimedJob
    call: Callable[[Job], Ending]
    ledger: StoreLedger
    check: int | None = None

    @property
    def what(self) -> str:
        """Its name in errors."""
        return "attempt" if self.check is None else "check"

    @property
    def told(self) -> dict[str, Any]:
        """What log lines say of it."""
        fields: dict[str, Any] = {"kind": self.job.kind, "job": self.job.id, "attempt": self.job.attempt}
        return fields if self.check is None else {**fields, "check": self.check}


def attempt_of(claimed: ClaimedJob, code: KindCode, store: WorkerStore, *, idempotent: bool) -> Task:
    """One attempt of a claimed job."""
    ledger = StoreLedger(store, claimed.id, claimed.fence)
    return Task(claimed, partial(run_attempt, code, idempotent=idempotent), ledger)


def question_of(check: Check, code: KindCode, store: WorkerStore) -> Task:
    """One question to the receiver of a job."""
    ledger = CheckLedger(store, check.job.id, check.job.fence)
    return Task(check.job, partial(run_check, code), ledger, check.number)
