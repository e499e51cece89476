"""Isolation "process": a child for every attempt, as many at once as the policy's children."""

import time

from stopline.store.worker import Success
from stopline.worker.supervisor import Ended, NotForkable, Supervisor
from stopline.worker.task import attempt_of
from stopline.worker.visit import NOT_STARTED, Visit

_WATCH_SECONDS = 60.0


def run_isolated(visit: Visit, supervisor: Supervisor) -> None:
    """Claims and runs until nothing is due or the time is short. What keeps it from claiming or starting is raised once
    everything that runs is finished: those attempts are paid for."""
    failed: Exception | None = None
    with supervisor:
        supervisor.check()
        while True:
            settled = False
            try:
                _start(visit, supervisor)
                settled = visit.settle()
            except Exception as error:
                failed = failed or error
                visit.claims.close("error")
            if settled and not visit.claims.open and not supervisor.running:
                break
            if not supervisor.running:
                time.sleep(visit.patience)
            for ended in supervisor.wait(_until(visit, supervisor)):
                _finish(visit, ended)
    if failed is not None:
        raise failed


def _start(visit: Visit, supervisor: Supervisor) -> None:
    """Claims only what can be started at once."""
    while visit.claims.open and visit.finisher.idle and supervisor.free and visit.fits():
        supervisor.prepare()
        jobs = visit.claims.take(supervisor.free, visit.seconds_left)
        if not jobs:
            visit.finisher.flush()
            return
        lease_ends = visit.claims.lease_ends
        for number, claimed in enumerate(jobs):
            if not visit.may_start(lease_ends):
                visit.finisher.release(claimed, NOT_STARTED, lease_ends)
                continue
            try:
                task = attempt_of(claimed, visit.code, visit.store, idempotent=visit.run.idempotent)
                supervisor.start(task, lease_ends)
            except NotForkable as error:
                for unstarted in jobs[number:]:
                    visit.finisher.release(unstarted, f"not started: {error}", lease_ends)
                raise
        visit.finisher.flush()


def _finish(visit: Visit, ended: Ended) -> None:
    claimed, ledger = ended.task.job, ended.task.ledger
    visit.note(claimed, ledger)
    if ended.ending.failure is not None:
        visit.failed(claimed, ledger, ended.ending, ended.lease_ends, ended.seconds)
        return
    fields = {"job": claimed.id, "attempt": claimed.attempt, "seconds": round(ended.seconds, 3)}
    success = Success(claimed.id, claimed.fence, ended.ending.result, ledger.usd)
    visit.finisher.succeed([success], ended.lease_ends, fields)


def _until(visit: Visit, supervisor: Supervisor) -> float:
    """Seconds after which something else than a child wants attention."""
    can_claim = visit.claims.open and supervisor.free
    return visit.patience if can_claim or visit.claims.unanswered or not visit.finisher.idle else _WATCH_SECONDS
