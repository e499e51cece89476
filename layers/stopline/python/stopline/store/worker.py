"""What a poller may do: tick, claim, end or record attempts, and ask receivers. Every call is safe to repeat.

A tick is keyed, a claim carries a token, a finish carries a fence, an answer the number of its question. A question
whose hand-out was lost counts as asked: its job is handed out again once its time is over.
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
from stopline.states import ClaimStatus, FinishAnswer, ReceiverAnswer, RecordAnswer, State, StopReason
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
class Check:
    """One question to a receiver that has been counted. `job` is the job as its newest attempt left it.

    `number` counts the questions of the job's round; `job.lease_seconds` is how long nobody else is handed the job.
    """

    job: ClaimedJob
    round: int
    number: int

    @property
    def job_id(self) -> int:
        """The job that the question is about."""
        return self.job.id


@dataclass(frozen=True, slots=True)
class UnreadableCheck:
    """A question about a job whose text Python cannot decode. It must be recorded as unknown."""

    job_id: int
    round: int
    number: int
    column: str
    error: str


@dataclass(frozen=True, slots=True)
class CheckRecorded:
    """What became of an answer, and where the job is now."""

    job_id: int
    answer: RecordAnswer
    state: State
    stop_reason: StopReason | None


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
            try:
                value, saved = _data(payload, checkpoint)
            except _Undecodable as error:
                unreadable.append(Unreadable(job_id, fence, error.column, error.cause))
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

    def due_checks(
        self, kind: str, worker: str, limit: int, seconds_left: float, installation: str
    ) -> list[Check | UnreadableCheck]:
        """Take up to `limit` questions that are due. Each is counted and is this caller's alone until its lease ends.

        None for a kind without the hook, for less time than an attempt's, or for another installation's database.
        """
        rows = self.session.rows(
            "select job_id, number, fence, round, attempt, attempts_left, key, payload, checkpoint, effect_key, "
            "deadline_at, lease_seconds from stopline.due_checks(%s, %s, %s, %s, %s)",
            (kind, worker, limit, seconds_left, installation),
        )
        return [_check(kind, *row) for row in rows]

    def record_check(self, job_id: int, round: int, number: int, answer: ReceiverAnswer, detail: str) -> CheckRecorded:
        """Record the answer to one question, and how it came about. The database decides what follows for the job."""
        ((recorded, state, stop_reason),) = self.session.rows(
            "select answer, state, stop_reason from stopline.record_check(%s, %s, %s, %s, %s)",
            (job_id, round, number, answer, detail),
        )
        return CheckRecorded(
            job_id,
            RecordAnswer(recorded),
            State(state),
            None if stop_reason is None else StopReason(stop_reason),
        )


class _Undecodable(ValueError):
    """`column` of a row holds text that Python cannot decode."""

    def __init__(self, column: str, cause: str) -> None:
        super().__init__(f"{column}: {cause}")
        self.column = column
        self.cause = cause


def _data(payload: str | None, checkpoint: str | None) -> tuple[Any, Any]:
    """Payload and checkpoint as values. Raises _Undecodable."""
    if payload is None:
        raise _Undecodable("payload", "the job's data row is missing")
    return _decoded("payload", payload), None if checkpoint is None else _decoded("checkpoint", checkpoint)


def _decoded(column: str, text: str) -> Any:
    try:
        return decode(text)
    except ValueError as error:
        raise _Undecodable(column, str(error)) from error


def _check(
    kind: str, job_id: int, number: int, fence: int, round: int, attempt: int, attempts_left: int, key: str | None,
    payload: str | None, checkpoint: str | None, effect_key: str, deadline_at: str | None, lease: float,
) -> Check | UnreadableCheck:  # fmt: skip
    try:
        value, saved = _data(payload, checkpoint)
    except _Undecodable as error:
        return UnreadableCheck(job_id, round, number, error.column, error.cause)
    job = ClaimedJob(job_id, kind, key, fence, attempt, attempts_left, effect_key, value, saved, deadline_at, lease)
    return Check(job, round, number)


def _finish(job_id: int, answer: str, state: str | None, stop_reason: str | None, due_at: str | None = None) -> Finish:
    return Finish(
        job_id,
        FinishAnswer(answer),
        None if state is None else State(state),
        None if stop_reason is None else StopReason(stop_reason),
        due_at,
    )
