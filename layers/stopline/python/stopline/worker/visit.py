"""What both ways of running share: one invocation's stay at one kind."""

import time
from dataclasses import dataclass

from stopline.logs import get_logger
from stopline.store.worker import ClaimedJob, RunSettings, WorkerStore
from stopline.worker.attempt import Ending
from stopline.worker.claims import Claims
from stopline.worker.finishing import Finisher
from stopline.worker.job import Tools
from stopline.worker.ledger import StoreLedger
from stopline.worker.loading import KindCode
from stopline.worker.tally import Tally

NOT_STARTED = "not started: the invocation's time was too short for another attempt"
_UNANSWERED = "not started: the answer to its claim did not come in time"


@dataclass(slots=True)
class Visit:
    """`ends` is the invocation's end in monotonic seconds."""

    code: KindCode
    run: RunSettings
    store: WorkerStore
    tools: Tools
    claims: Claims
    finisher: Finisher
    tally: Tally
    ends: float

    @property
    def seconds_left(self) -> float:
        """Seconds of the invocation that are left."""
        return self.ends - time.monotonic()

    @property
    def needed(self) -> float:
        """Seconds that a further attempt needs.

        Half the margin is for what comes before an attempt (a cold start, the tick), half for what comes after it (the
        kill, the finish): by default an invocation is exactly timeout + margin long.
        """
        return self.run.timeout_s + self.run.margin_s / 2

    def fits(self) -> bool:
        """Whether an attempt still fits the invocation. Stops claiming when it does not."""
        if self.seconds_left >= self.needed:
            return True
        self.tally.out_of_time = True
        self.claims.close()
        return False

    def settle(self) -> bool:
        """Writes what can be written now; once no more is claimed, also releases what a claim whose answer was lost may
        have claimed. Returns whether nothing is left; else come back after `patience`."""
        for claimed in self.claims.recover(self.ends):
            self.finisher.release(claimed, _UNANSWERED, self.claims.lease_ends)
        return self.finisher.flush() and not self.claims.unanswered

    @property
    def patience(self) -> float:
        """Seconds until a finish or a claim that the database did not answer can be tried again."""
        at = self.claims.next_try if self.finisher.idle else self.finisher.next_try
        return max(at - time.monotonic(), 0.0)

    def may_start(self, lease_ends: float) -> bool:
        """Whether a claimed job's attempt fits both the invocation and its lease, whose answer may have come late.

        Stops claiming when it does not: with a database so slow, jobs would only be claimed and released again.
        """
        if min(self.seconds_left, lease_ends - time.monotonic()) >= self.needed:
            return True
        self.tally.out_of_time = True
        self.claims.close()
        return False

    def note(self, claimed: ClaimedJob, ledger: StoreLedger) -> None:
        """Counts the calls that the attempt reported, and logs what it noted."""
        self.tally.calls += ledger.calls
        for text in ledger.notes:
            get_logger().warning("job_note", kind=claimed.kind, job=claimed.id, attempt=claimed.attempt, text=text)

    def failed(
        self, claimed: ClaimedJob, ledger: StoreLedger, ending: Ending, lease_ends: float, seconds: float
    ) -> None:
        """Notes a failed attempt; one that only lost sight of the queue, before it did anything, is released."""
        if ending.failure is None:
            raise ValueError(f"job {claimed.id} did not fail")
        if ending.queue_lost and self._untouched(ledger):
            why = f"the queue's database was away: {ending.failure.error}"
            self.finisher.release(claimed, why, lease_ends, otherwise=ending.failure)
            return
        self.finisher.fail(
            claimed.id,
            claimed.fence,
            ending.failure,
            ledger.usd,
            lease_ends,
            attempt=claimed.attempt,
            seconds=round(seconds, 3),
        )

    def _untouched(self, ledger: StoreLedger) -> bool:
        repeatable = self.run.idempotent or self.run.effect == "stamped"
        return repeatable and not ledger.touched and ledger.usd is None
