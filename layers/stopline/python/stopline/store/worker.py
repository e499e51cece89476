"""What a poller may do: tick, claim, and end or record attempts. Every call is safe to repeat.

A tick is keyed, a claim carries a token, a finish carries a fence.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import psycopg

from stopline.errors import InvalidInput, Refused
from stopline.failure import Failure
from stopline.payload import decode
from stopline.states import ClaimStatus, FinishAnswer, State, StopReason
from stopline.store.connection import Session

_UNSTORABLE = '{"stopline": "result not stored", "why": "the database refused it"}'


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How the worker runs a kind's attempts; times in seconds."""

    kind: str
    isolation: str
    children: int
    batch: int
    timeout_s: float
    margin_s: float
    memory_mb: int
    idempotent: bool
    effect: str
    max_steps: int | None


_RUN_KEYS = tuple(field.name for field in fields(RunSettings) if field.name != "kind")
"""A newer engine may tell more (docs/upgrade.md)."""


@dataclass(frozen=True, slots=True)
class Tick:
    """Whether a claim could succeed, what the source and the schedule enqueued, and how to run the kind.

    `note` says what went wrong in the source, if anything did; it never keeps the kind's jobs from being claimed.
    """

    status: ClaimStatus
    counts: dict[str, int]
    run: RunSettings
    note: str | None


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """One attempt that has been counted and paid for. `lease_seconds` is what was left of the lease when claimed."""

    id: int
    kind: str
    key: str | None
    fence: int
    attempt: int
    attempts_left: int
    effect_key: str
    payload: Any
    checkpoint: Any
    deadline_at: str | None
    lease_seconds: float


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A claimed row whose text Python cannot decode. It must be failed as permanent and unreadable."""

    id: int
    fence: int
    column: str
    error: str


@dataclass(frozen=True, slots=True)
class Claim:
    """The answer to one claim."""

    status: ClaimStatus
    jobs: list[ClaimedJob]
    unreadable: list[Unreadable]


@dataclass(frozen=True, slots=True)
class Success:
    """One job that is done. `result` is JSON text, `cost` US dollars; None keeps the reservation."""

    job_id: int
    fence: int
    result: str | None
    cost: Decimal | None


@dataclass(frozen=True, slots=True)
class Finish:
    """What became of a finish; `due_at` is the next attempt or check as ISO text."""

    job_id: int
    answer: FinishAnswer
    state: State | None
    stop_reason: StopReason | None
    due_at: str | None = None


@dataclass(frozen=True, slots=True)
class StepAnswer:
    """`status` is "ok", "step_limit" or "budget"; `steps` is how many the job has taken in this round."""

    status: str
    steps: int


class WorkerStore:
    """The engine's worker functions over one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def tick(self, kind: str, scheduled_for: datetime | None) -> Tick:
        """Say that the poller lives, enqueue from the source and, if given, one scheduled occurrence.

        Raises InvalidInput if the database does not know the kind.
        """
        ((answer,),) = self.session.rows("select stopline.tick(%s, %s)", (kind, scheduled_for))
        return Tick(
            status=ClaimStatus(answer["status"]),
            counts=answer["counts"],
            run=RunSettings(kind=kind, **{name: answer["run"][name] for name in _RUN_KEYS}),
            note=answer["note"],
        )

    def claim(self, kind: str, worker: str, token: UUID, batch: int, seconds_left: float, installation: str) -> Claim:
        """Claim up to `batch` due jobs. Use a fresh `token` for each claim, and the same one to repeat it.

        `seconds_left` is how long this invocation may still run. Rows are decoded one by one, so that one bad row costs
        its neighbours nothing.
        """
        rows = self.session.rows(
            "select status, job_id, fence, attempt, attempts_left, key, payload, checkpoint, effect_key, deadline_at, "
            "lease_seconds from stopline.claim(%s, %s, %s, %s, %s, %s)",
            (kind, worker, token, batch, seconds_left, installation),
        )
        jobs: list[ClaimedJob] = []
        unreadable: list[Unreadable] = []
        for _, job_id, fence, attempt, left, key, payload, checkpoint, effect_key, deadline_at, lease in rows:
            if job_id is None:
                continue
            column = "payload"
            try:
                if payload is None:
                    raise ValueError("the job's data row is missing")
                value = decode(payload)
                column = "checkpoint"
                saved = None if checkpoint is None else decode(checkpoint)
            except ValueError as error:
                unreadable.append(Unreadable(job_id, fence, column, str(error)))
                continue
            jobs.append(
                ClaimedJob(job_id, kind, key, fence, attempt, left, effect_key, value, saved, deadline_at, lease)
            )
        return Claim(ClaimStatus(rows[0][0]), jobs, unreadable)

    def succeed(self, items: Sequence[Success]) -> list[Finish]:
        """Finish jobs in one call and one commit. A result that the database refuses is replaced by a marker: the work
        is done, and must not be done again for the sake of its description."""
        if not items:
            return []
        try:
            return self._succeed(items)
        except (psycopg.DataError, InvalidInput, Refused):
            pass
        if len(items) == 1:
            return self._succeed([Success(items[0].job_id, items[0].fence, _UNSTORABLE, items[0].cost)])
        return [finish for item in items for finish in self.succeed([item])]

    def _succeed(self, items: Iterable[Success]) -> list[Finish]:
        ordered = sorted(items, key=lambda item: item.job_id)
        rows = self.session.rows(
            "select job_id, answer, state, stop_reason "
            "from stopline.succeed(%s::bigint[], %s::bigint[], %s::jsonb[], %s::numeric[])",
            (
                [item.job_id for item in ordered],
                [item.fence for item in ordered],
                [item.result for item in ordered],
                [item.cost for item in ordered],
            ),
        )
        return [_finish(*row) for row in rows]

    def fail(self, job_id: int, fence: int, failure: Failure, cost: Decimal | None) -> Finish:
        """End an attempt that did not succeed; the database decides what follows from the kind's policy."""
        (row,) = self.session.rows(
            "select %s::bigint, answer, state, stop_reason, due_at "
            "from stopline.fail(%s, %s, %s, %s, %s, %s, %s, %s, %s)",
            (
                job_id, job_id, fence, failure.outcome, failure.error_class, failure.error, failure.fingerprint,
                failure.retry_after, failure.stop_reason, cost,
            ),
        )  # fmt: skip
        return _finish(*row)

    def release(self, job_id: int, fence: int, why: str) -> Finish:
        """Hand back a claim whose work has not started. Raises Refused once the attempt has recorded an effect, a step
        or a checkpoint."""
        (row,) = self.session.rows(
            "select %s::bigint, answer, state, stop_reason, due_at from stopline.release(%s, %s, %s)",
            (job_id, job_id, fence, why),
        )
        return _finish(*row)

    def start_effect(self, job_id: int, fence: int) -> None:
        """Stamp that the effect is about to be sent. Raises LeaseLost if the attempt no longer holds the job."""
        self.session.rows("select stopline.start_effect(%s, %s)", (job_id, fence))

    def count_step(self, job_id: int, fence: int, step: int) -> StepAnswer:
        """Count this attempt's agent step number `step` (from 1) and reserve its price, before it is taken. Raises
        LeaseLost."""
        (row,) = self.session.rows("select status, steps from stopline.count_step(%s, %s, %s)", (job_id, fence, step))
        return StepAnswer(*row)

    def save_checkpoint(self, job_id: int, fence: int, checkpoint: str) -> None:
        """Store JSON text from which a later attempt resumes. Raises LeaseLost, or Refused if it is too large."""
        self.session.rows("select stopline.save_checkpoint(%s, %s, %s::jsonb)", (job_id, fence, checkpoint))


def _finish(job_id: int, answer: str, state: str | None, stop_reason: str | None, due_at: str | None = None) -> Finish:
    return Finish(
        job_id,
        FinishAnswer(answer),
        None if state is None else State(state),
        None if stop_reason is None else StopReason(stop_reason),
        due_at,
    )
