"""Claims jobs for one kind in one invocation."""

import time
from uuid import UUID, uuid4

from stopline.errors import InfrastructureError
from stopline.failure import Failure
from stopline.logs import get_logger
from stopline.states import ClaimStatus, Outcome, StopReason
from stopline.store.worker import Claim, ClaimedJob, Unreadable, WorkerStore
from stopline.worker.finishing import Finisher
from stopline.worker.tally import Tally

_TRIES = 5
_FIRST_PAUSE = 0.25
_LONGEST_PAUSE = 2.0


class Claims:
    """Hands out claimed jobs until the database says that there are none, or cannot be reached.

    A call whose answer was lost is repeated with the same token, so what it had claimed is not left behind.
    `lease_ends` (monotonic seconds) belongs to the jobs of the last call.
    """

    def __init__(
        self, kind: str, store: WorkerStore, worker: str, installation: str, finisher: Finisher, tally: Tally
    ) -> None:
        self._kind = kind
        self._store = store
        self._worker = worker
        self._installation = installation
        self._finisher = finisher
        self._tally = tally
        self._token: UUID | None = None
        self._asked = 0.0
        self._tries = 0
        self.open = True
        self.next_try = 0.0
        self.lease_ends = 0.0

    def take(self, batch: int, seconds_left: float) -> list[ClaimedJob]:
        """Up to `batch` jobs; none when it is too early to try again, or nothing is left (then `open` is False)."""
        now = time.monotonic()
        if now < self.next_try:
            return []
        if self._token is None:
            self._token, self._asked = uuid4(), now
        try:
            claim = self._store.claim(self._kind, self._worker, self._token, batch, seconds_left, self._installation)
        except InfrastructureError as error:
            self._unanswered(error)
            if self._tries >= _TRIES:
                self.close("unreachable")
            return []
        except Exception:
            self._token = None  # the database refused the call, so it claimed nothing
            raise
        self._token, self._tries = None, 0
        return self._taken(claim)

    @property
    def unanswered(self) -> bool:
        """Whether a call may have claimed jobs that nobody knows of."""
        return self._token is not None

    def recover(self, ends: float) -> list[ClaimedJob]:
        """Jobs of a call that was never answered, once no more are claimed: they must be released.

        Repeated with its token and no time left, a claim gives back what it had claimed and claims nothing new. While
        the database is away it stays `unanswered` until `ends` (monotonic seconds); then its lease does the rest.
        """
        if self._token is None or self.open or time.monotonic() < self.next_try:
            return []
        try:
            claim = self._store.claim(self._kind, self._worker, self._token, 1, 0.0, self._installation)
        except InfrastructureError as error:
            self._unanswered(error)
            if self.next_try >= ends:
                self._token = None
                get_logger().error("claim_lost", kind=self._kind, tries=self._tries)
            return []
        except Exception:
            self._token = None
            raise
        self._token = None
        self._count(claim)
        return claim.jobs

    def close(self, status: str | None = None) -> None:
        """Claims no more."""
        self.open = False
        if status is not None:
            self._tally.status = status

    def _taken(self, claim: Claim) -> list[ClaimedJob]:
        self._tally.status = str(claim.status)
        if claim.status != ClaimStatus.OK or not (claim.jobs or claim.unreadable):
            self.open = False
        self._count(claim)
        return claim.jobs

    def _count(self, claim: Claim) -> None:
        self._tally.claimed += len(claim.jobs) + len(claim.unreadable)
        lease = min((job.lease_seconds for job in claim.jobs), default=0.0)
        # Counted from the first call: a repeat's answer may give the lease as it was then.
        self.lease_ends = self._asked + lease
        for row in claim.unreadable:
            self._unreadable(row)

    def _unreadable(self, row: Unreadable) -> None:
        self._tally.unreadable += 1
        failure = Failure(
            Outcome.PERMANENT,
            "Unreadable",
            f"its {row.column} cannot be read: {row.error}",
            stop_reason=StopReason.UNREADABLE,
        )
        self._finisher.fail(row.id, row.fence, failure, None, max(self.lease_ends, time.monotonic() + 30.0))

    def _unanswered(self, error: InfrastructureError) -> None:
        self._tries += 1
        get_logger().warning("claim_unanswered", kind=self._kind, tries=self._tries, error=str(error))
        self.next_try = time.monotonic() + min(_FIRST_PAUSE * 2 ** (self._tries - 1), _LONGEST_PAUSE)
