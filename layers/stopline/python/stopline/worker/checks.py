"""Puts the due questions of one kind to its receiver, before anything is claimed.

Only jobs whose outcome is unknown, or whose replay was asked for, have any. No money is spent, so questions are asked
while the kind is paused or over its budget too. Whatever becomes of a question is recorded; it fails nothing else.
"""

import time
from collections.abc import Iterator

from stopline.states import ReceiverAnswer
from stopline.store.worker import Check, UnreadableCheck
from stopline.worker.job import Job
from stopline.worker.question import answer_of
from stopline.worker.supervisor import Ended, NotForkable, Supervisor
from stopline.worker.task import question_of
from stopline.worker.visit import Visit

_WATCH_SECONDS = 60.0
_TOO_LATE = "not asked: the invocation's time was too short, or the database too slow to hand the question out"
_UNREADABLE = "not asked: the job's {} cannot be read: {}"


class Checks:
    """One invocation's questions for one kind. None is taken after `until` (monotonic seconds).

    What keeps it from taking more is raised once everything that was asked is recorded.
    """

    def __init__(self, visit: Visit, worker: str, installation: str, until: float) -> None:
        self._visit = visit
        self._worker = worker
        self._installation = installation
        self._until = until
        self._open = True
        self._lease_ends = 0.0
        self._failed: Exception | None = None

    def ask_inline(self) -> None:
        """Asks one after another in this very process, so that a crash takes one question with it."""
        visit = self._visit
        while self._open:
            for check in self._take(1):
                begun = time.monotonic()
                task = question_of(check, visit.code, visit.store)
                ending = task.call(Job(check.job, task.ledger, visit.tools, begun + visit.run.timeout_s))
                visit.note(check.job, task.ledger)
                self._answered(check, *answer_of(ending), time.monotonic() - begun)
            visit.finisher.drain()
        self._raise()

    def ask_isolated(self, supervisor: Supervisor) -> None:
        """Asks in children, as many at once as the policy's. Raises NotForkable when none can be started."""
        supervisor.check()
        checks = self._take(supervisor.free)
        if checks:
            with supervisor:
                self._ask(supervisor, checks)
        self._visit.finisher.drain()
        self._raise()

    def _ask(self, supervisor: Supervisor, checks: list[Check]) -> None:
        asked: dict[int, Check] = {}
        while checks or supervisor.running:
            for check in self._startable(checks):
                try:
                    supervisor.start(question_of(check, self._visit.code, self._visit.store), self._lease_ends)
                    asked[check.job.id] = check
                except NotForkable as error:
                    self._open = False
                    self._answered(check, ReceiverAnswer.UNKNOWN, f"not asked: {error}")
            for ended in supervisor.wait(_WATCH_SECONDS if self._visit.finisher.idle else self._visit.patience):
                self._ended(asked.pop(ended.task.job.id), ended)
            self._visit.finisher.flush()
            checks = self._take(supervisor.free)

    def _take(self, limit: int) -> list[Check]:
        """Further questions that are due, while there is time for them and the database takes their answers."""
        visit = self._visit
        begun = time.monotonic()
        if begun > self._until:
            self._open = False
        if not self._open or limit == 0 or not visit.finisher.idle:
            return []
        kind, left = visit.code.kind, visit.seconds_left
        try:
            found = visit.store.due_checks(kind, self._worker, limit, left, self._installation)
        except Exception as error:
            # What is being asked now goes on to its answer.
            self._open, self._failed = False, error
            return []
        self._open = len(found) == limit
        checks = [entry for entry in found if isinstance(entry, Check)]
        lease = min((check.job.lease_seconds for check in checks), default=visit.run.timeout_s)
        self._lease_ends = begun + lease
        for entry in found:
            if isinstance(entry, UnreadableCheck):
                self._unreadable(entry)
        return checks

    def _raise(self) -> None:
        if self._failed is not None:
            raise self._failed

    def _startable(self, checks: list[Check]) -> Iterator[Check]:
        for check in checks:
            if min(self._visit.ends, self._lease_ends) - time.monotonic() >= self._visit.needed:
                yield check
            else:
                self._open = False
                self._answered(check, ReceiverAnswer.UNKNOWN, _TOO_LATE)

    def _ended(self, check: Check, ended: Ended) -> None:
        self._visit.note(check.job, ended.task.ledger)
        self._answered(check, *answer_of(ended.ending), ended.seconds)

    def _answered(self, check: Check, answer: ReceiverAnswer, detail: str, seconds: float = 0.0) -> None:
        self._visit.finisher.answer(check, answer, detail, self._lease_ends, seconds)

    def _unreadable(self, row: UnreadableCheck) -> None:
        self._visit.tally.unreadable += 1
        detail = _UNREADABLE.format(row.column, row.error)
        self._visit.finisher.answer(row, ReceiverAnswer.UNKNOWN, detail, self._lease_ends)
