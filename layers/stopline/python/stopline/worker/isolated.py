"""Isolation "process": a child for every attempt, as many at once as the policy's children."""

import time

from stopline.store.worker import Success
from stopline.worker.supervisor import Ended, NotForkable, Supervisor
from stopline.worker.visit import NOT_STARTED, Visit

_WATCH_SECONDS = 60.0


def run_isolated(visit: Visit, supervisor: Supervisor) -> None:
    """Claims and runs until nothing is due or the time is short. Raises NotForkable once what runs is finished."""
    unable: NotForkable | None = None
    with supervisor:
        supervisor.check()
        while True:
            try:
                _start(visit, supervisor)
            except NotForkable as error:
                unable = error
                visit.claims.close("error")
            if not supervisor.running:
                if not visit.claims.open:
                    visit.release_unanswered()
                    visit.finisher.flush()
                    if visit.finisher.idle:
                        break
                _pause(visit)
            for ended in supervisor.wait(_until(visit)):
                _finish(visit, ended)
            visit.finisher.flush()
    if unable is not None:
        raise unable


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
                supervisor.start(claimed, lease_ends)
            except NotForkable as error:
                for unstarted in jobs[number:]:
                    visit.finisher.release(unstarted, f"not started: {error}", lease_ends)
                raise
        visit.finisher.flush()


def _finish(visit: Visit, ended: Ended) -> None:
    claimed, ledger = ended.claimed, ended.ledger
    visit.note(claimed, ledger)
    if ended.ending.failure is not None:
        visit.failed(claimed, ledger, ended.ending, ended.lease_ends, ended.seconds)
        return
    fields = {"job": claimed.id, "attempt": claimed.attempt, "seconds": round(ended.seconds, 3)}
    success = Success(claimed.id, claimed.fence, ended.ending.result, ledger.usd)
    visit.finisher.succeed([success], ended.lease_ends, fields)


def _until(visit: Visit) -> float:
    """Seconds after which something else than a child wants attention."""
    times = [] if visit.finisher.idle else [visit.finisher.next_try]
    if visit.claims.open:
        times.append(visit.claims.next_try)
    now = time.monotonic()
    ahead = [at - now for at in times if at > now]
    return min(ahead, default=_WATCH_SECONDS)


def _pause(visit: Visit) -> None:
    """Nothing runs, and the database has to be tried again later."""
    now = time.monotonic()
    waits = [] if visit.finisher.idle else [visit.finisher.next_try - now]
    if visit.claims.open:
        waits.append(visit.claims.next_try - now)
    time.sleep(max(min(waits, default=0.0), 0.0))
