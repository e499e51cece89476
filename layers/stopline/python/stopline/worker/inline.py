"""Isolation "inline": batches run in this very process, for cheap kinds of high volume. No child, so no timeout is
enforced and a crash takes the claim down; the database limits the company of a job that was in one."""

import time

from stopline.store.worker import ClaimedJob, Success
from stopline.worker.attempt import run_attempt
from stopline.worker.job import Job
from stopline.worker.ledger import StoreLedger
from stopline.worker.visit import NOT_STARTED, Visit


def run_inline(visit: Visit) -> None:
    """Claims and runs batch after batch until nothing is due or the time is short."""
    while visit.claims.open and visit.fits():
        jobs = visit.claims.take(visit.run.batch, visit.seconds_left)
        if jobs:
            _run_batch(visit, jobs)
        visit.finisher.drain()
        if not jobs and visit.claims.open:
            time.sleep(visit.patience)
    while not visit.settle():
        time.sleep(visit.patience)


def _run_batch(visit: Visit, jobs: list[ClaimedJob]) -> None:
    """Every job gets an outcome or is released, whatever one of them raises."""
    successes: list[Success] = []
    lease_ends = visit.claims.lease_ends
    code, store, tools = visit.code, visit.store, visit.tools
    timeout, idempotent = visit.run.timeout_s, visit.run.idempotent
    last_start = min(visit.ends, lease_ends) - visit.needed
    begun = 0
    try:
        for claimed in jobs:
            now = time.monotonic()
            if now > last_start:
                break
            begun += 1
            ledger = StoreLedger(store, claimed.id, claimed.fence)
            ending = run_attempt(code, Job(claimed, ledger, tools, now + timeout), idempotent)
            if ledger.calls or ledger.notes:
                visit.note(claimed, ledger)
            if ending.failure is None:
                successes.append(Success(claimed.id, claimed.fence, ending.result, ledger.usd))
            else:
                visit.failed(claimed, ledger, ending, lease_ends, time.monotonic() - now)
    finally:
        visit.finisher.succeed(successes, lease_ends)
        for claimed in jobs[begun:]:
            visit.finisher.release(claimed, NOT_STARTED, lease_ends)
        visit.finisher.flush()
