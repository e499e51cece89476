"""Writes down how attempts ended, and what receivers answered.

A finish that cannot be written for want of a database, or of a right in it, is repeated with its fence until its lease
ends or the invocation's time is spent; it never turns into the job's failure.
"""

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import partial
from typing import Any

from stopline.errors import InfrastructureError
from stopline.errortext import clean, describe
from stopline.failure import Failure
from stopline.logs import get_logger
from stopline.states import Outcome, ReceiverAnswer
from stopline.store.faults import may_pass
from stopline.store.worker import Check, ClaimedJob, Finish, Success, UnreadableCheck, WorkerStore
from stopline.worker.tally import Tally

_FIRST_PAUSE = 0.1
_LONGEST_PAUSE = 2.0
_DETAIL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class _Entry:
    """One write. `plainer` are the writes to try when the database refuses this one for what it says."""

    outcome: str
    jobs: int
    lease_ends: float
    write: Callable[[], Sequence[Finish]]
    plainer: Callable[[], list["_Entry"]] | None
    fields: dict[str, Any] | None = None


class Finisher:
    """The finishes of one kind in one invocation, in order. `ends` is the invocation's end in monotonic seconds."""

    def __init__(self, kind: str, store: WorkerStore, tally: Tally, ends: float) -> None:
        self._kind = kind
        self._store = store
        self._tally = tally
        self._ends = ends
        self._entries: deque[_Entry] = deque()
        self._pause = 0.0
        self.next_try = 0.0

    @property
    def idle(self) -> bool:
        """Whether everything has been written or given up."""
        return not self._entries

    def succeed(self, items: list[Success], lease_ends: float, fields: dict[str, Any] | None = None) -> None:
        """Notes successes, to be written in one call."""
        if items:
            self._entries.append(
                _Entry(
                    outcome=Outcome.SUCCEEDED,
                    jobs=len(items),
                    lease_ends=lease_ends,
                    write=lambda: self._store.succeed(items),
                    plainer=(lambda: self._one_by_one(items, lease_ends)) if len(items) > 1 else None,
                    fields=fields,
                )
            )

    def fail(
        self, job_id: int, fence: int, failure: Failure, cost: Decimal | None, lease_ends: float, **fields: Any
    ) -> None:
        """Notes a failed attempt."""
        told = {"job": job_id, "error_class": failure.error_class, **fields}
        bare = replace(failure, error="the database refused the error's text")

        def plainer() -> list[_Entry]:
            return [self._failure(job_id, fence, bare, cost, lease_ends, told)]

        self._entries.append(replace(self._failure(job_id, fence, failure, cost, lease_ends, told), plainer=plainer))

    def release(self, claimed: ClaimedJob, why: str, lease_ends: float, otherwise: Failure | None = None) -> None:
        """Notes that a claimed job was not started, so that it keeps its attempt.

        `otherwise` is how the attempt ended if the database knows that it had begun.
        """

        def plainer() -> list[_Entry]:
            return [self._failure(claimed.id, claimed.fence, otherwise, None, lease_ends, told)] if otherwise else []

        told = {"job": claimed.id, "why": why}
        self._entries.append(
            _Entry(
                outcome=Outcome.RELEASED,
                jobs=1,
                lease_ends=lease_ends,
                write=lambda: [self._store.release(claimed.id, claimed.fence, why)],
                plainer=plainer if otherwise else None,
                fields=told,
            )
        )

    def answer(
        self,
        check: Check | UnreadableCheck,
        answer: ReceiverAnswer,
        detail: str,
        lease_ends: float,
        seconds: float = 0.0,
    ) -> None:
        """Notes what a receiver answered to a question. It is no attempt and counts as none."""
        told: dict[str, Any] = {"job": check.job_id, "round": check.round, "number": check.number, "given": answer}

        def write(text: str) -> list[Finish]:
            recorded = self._store.record_check(check.job_id, check.round, check.number, answer, text)
            self._tally.checks[answer] += 1
            get_logger().info(
                "check",
                kind=self._kind,
                answer=recorded.answer,
                state=recorded.state,
                stop_reason=recorded.stop_reason,
                detail=text.partition("\n")[0][:_DETAIL_CHARACTERS],
                seconds=round(seconds, 3),
                **told,
            )
            return []

        entry = _Entry("check", 0, lease_ends, partial(write, clean(detail)), None, told)
        bare = replace(entry, write=partial(write, "the database refused the detail's text"))
        self._entries.append(replace(entry, plainer=lambda: [bare]))

    def flush(self) -> bool:
        """Writes what can be written now. Returns whether nothing is left; else `next_try` says when to come back."""
        while self._entries and time.monotonic() >= self.next_try:
            entry = self._entries.popleft()
            try:
                finishes = list(entry.write())
            except InfrastructureError as error:
                self._come_back(entry, error)
            except Exception as error:
                if may_pass(error):
                    get_logger().error("finish_waits", kind=self._kind, outcome=entry.outcome, error=describe(error)[1])
                    self._come_back(entry, error)
                else:
                    self._refused(entry, error)
            else:
                self._pause = 0.0
                self._written(entry, finishes)
        return not self._entries

    def drain(self) -> None:
        """Writes everything, waiting between tries while the database is away."""
        while not self.flush():
            time.sleep(max(self.next_try - time.monotonic(), 0.0))

    def _one_by_one(self, items: list[Success], lease_ends: float) -> list[_Entry]:
        """The same successes each on its own: what the database refuses in one must not cost its neighbours."""
        return [
            _Entry(Outcome.SUCCEEDED, 1, lease_ends, partial(self._store.succeed, [item]), None, {"job": item.job_id})
            for item in items
        ]

    def _failure(
        self, job_id: int, fence: int, failure: Failure, cost: Decimal | None, lease_ends: float, fields: dict[str, Any]
    ) -> _Entry:
        return _Entry(
            outcome=failure.outcome,
            jobs=1,
            lease_ends=lease_ends,
            write=lambda: [self._store.fail(job_id, fence, failure, cost)],
            plainer=None,
            fields=fields,
        )

    def _come_back(self, entry: _Entry, error: Exception) -> None:
        now = time.monotonic()
        self._pause = min(self._pause * 2, _LONGEST_PAUSE) if self._pause else _FIRST_PAUSE
        if now + self._pause >= min(entry.lease_ends, self._ends):
            self._lost(entry, error)
            return
        self._entries.appendleft(entry)
        self.next_try = now + self._pause

    def _refused(self, entry: _Entry, error: Exception) -> None:
        get_logger().error(
            "finish_refused", kind=self._kind, outcome=entry.outcome, error=describe(error)[1], **entry.fields or {}
        )
        if entry.plainer is None:
            self._lost(entry, error)
        else:
            self._entries.extendleft(reversed(entry.plainer()))

    def _lost(self, entry: _Entry, error: Exception) -> None:
        """The lease does the rest: its end is recorded as a crash."""
        self._tally.lost += entry.jobs
        get_logger().error(
            "finish_lost",
            kind=self._kind,
            outcome=entry.outcome,
            jobs=entry.jobs,
            error=describe(error)[1],
            **entry.fields or {},
        )

    def _written(self, entry: _Entry, finishes: list[Finish]) -> None:
        self._tally.finished(entry.outcome, finishes)
        if entry.fields is None:
            return
        for finish in finishes:
            get_logger().info(
                "attempt",
                kind=self._kind,
                outcome=entry.outcome,
                answer=finish.answer,
                state=finish.state,
                stop_reason=finish.stop_reason,
                due_at=finish.due_at,
                **entry.fields,
            )
