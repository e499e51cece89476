"""A poller reduced to its queue calls, so that a test reads as a timeline."""

from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID, uuid4

from stopline.failure import Failure
from stopline.states import Outcome
from stopline.store.worker import Claim, ClaimedJob, Finish, Success, WorkerStore
from tests.support.database import Database

PLENTY = 900.0


@dataclass
class Poller:
    """Claims and finishes over a session of its own as `stopline_worker`."""

    db: Database
    name: str = "w1"

    def __post_init__(self) -> None:
        self.store = WorkerStore(self.db.session())

    def claim(
        self, kind: str = "work", batch: int = 1, *, token: UUID | None = None, seconds_left: float = PLENTY
    ) -> Claim:
        return self.store.claim(kind, self.name, token or uuid4(), batch, seconds_left, self.db.identity)

    def one(self, kind: str = "work") -> ClaimedJob:
        """The one job that is due."""
        claim = self.claim(kind)
        assert len(claim.jobs) == 1, f"claimed {len(claim.jobs)} jobs, status {claim.status}"
        return claim.jobs[0]

    def succeed(self, job: ClaimedJob, *, cost: str | None = None, result: str | None = None) -> Finish:
        (finish,) = self.store.succeed([Success(job.id, job.fence, result, None if cost is None else Decimal(cost))])
        return finish

    def fail(
        self,
        job: ClaimedJob,
        outcome: Outcome = Outcome.TRANSIENT,
        error: str = "the model is busy",
        *,
        retry_after: float | None = None,
        cost: str | None = None,
    ) -> Finish:
        failure = Failure(outcome, "Busy", error, retry_after=retry_after)
        return self.store.fail(job.id, job.fence, failure, None if cost is None else Decimal(cost))

    def release(self, job: ClaimedJob, why: str = "no time left") -> Finish:
        return self.store.release(job.id, job.fence, why)


def sweep(db: Database, limit: int = 500) -> dict[str, int]:
    """One sweep as the sweeper; only the transitions that happened."""
    with db.connect("stopline_sweeper") as conn:
        rows = conn.execute("select transition, jobs from stopline.sweep(%s)", [limit]).fetchall()
    return {transition: jobs for transition, jobs in rows if jobs}
