"""The outage breaker: a fault upstream pauses the kind instead of spending every job's attempts."""

from datetime import timedelta
from typing import Any

import pytest

from stopline.failure import Failure
from stopline.states import ClaimStatus, Outcome
from stopline.store.worker import ClaimedJob
from tests.support.database import Database
from tests.support.operator import Operator, events
from tests.support.poller import Poller, sweep

POLICY: dict[str, Any] = {
    "max_attempts": 5,
    "max_crashes": 5,
    "retry_base": 30,
    "retry_cap": 60,
    "breaker_window": 600,
    "breaker_jobs": 5,
    "breaker_share": 0.9,
    "breaker_cooldown": 60,
    "breaker_max_cooldown": 480,
    "timeout": 30,
    "margin": 15,
}


def fail_all(poller: Poller, outcome: Outcome = Outcome.TRANSIENT, error: str = "service unavailable") -> int:
    """Claims what is due and fails it alike. Returns the calls that were made."""
    calls = 0
    while (claim := poller.claim(batch=100)).jobs:
        for job in claim.jobs:
            calls += 1
            poller.store.fail(job.id, job.fence, Failure(outcome, "ServiceUnavailable", error), None)
    return calls


def open_breaker(db: Database, jobs: int = 6, **policy: Any) -> Poller:
    db.policy(**(POLICY | policy))
    db.freeze()
    for _ in range(jobs):
        db.enqueue()
    poller = Poller(db)
    fail_all(poller)
    assert sweep(db) == {"breaker_opened": 1}
    return poller


def probe(db: Database, poller: Poller) -> ClaimedJob:
    """The one job that is let through once the pause is over."""
    db.move("70s")
    claim = poller.claim(batch=10)
    assert len(claim.jobs) == 1
    assert poller.claim(batch=10).status is ClaimStatus.PAUSED
    return claim.jobs[0]


def test_jobs_that_fail_alike_open_the_breaker_and_no_attempt_is_spent_meanwhile(db: Database) -> None:
    poller = open_breaker(db)
    db.move("59s")
    assert poller.claim().status is ClaimStatus.PAUSED
    assert poller.store.tick("work", None).status is ClaimStatus.PAUSED
    (kind,) = db.rows("select paused_by, paused_why from stopline.kind")
    assert kind["paused_by"] == "breaker"
    assert "6 attempts of 6 jobs failed alike: ServiceUnavailable" in kind["paused_why"]
    assert events(db) == ["breaker_opened"]
    totals = db.rows("select stopline.health() -> 'totals' as t")[0]["t"]
    assert (totals["Breakers"], totals["KindsPaused"]) == (1, 1)


@pytest.mark.parametrize("outcome", [Outcome.CRASHED, Outcome.TIMEOUT])
def test_crashes_do_not_open_it(db: Database, outcome: Outcome) -> None:
    db.policy(**POLICY)
    for _ in range(8):
        db.enqueue()
    fail_all(Poller(db), outcome)
    assert sweep(db) == {}


def test_too_few_distinct_jobs_do_not_open_it(db: Database) -> None:
    db.policy(**(POLICY | {"max_attempts": 50, "retry_base": 1, "retry_cap": 1}))
    for _ in range(4):
        db.enqueue()
    poller = Poller(db)
    for _ in range(10):
        fail_all(poller)
        db.move("2s")
    assert sweep(db) == {}


def test_one_poison_job_among_healthy_ones_does_not_open_it(db: Database) -> None:
    db.policy(**(POLICY | {"max_attempts": 50, "retry_base": 1, "retry_cap": 1, "breaker_jobs": 1}))
    poison = db.enqueue().job_id
    poller = Poller(db)
    for _ in range(20):
        db.enqueue()
        for job in poller.claim(batch=10).jobs:
            if job.id == poison:
                poller.fail(job)
            else:
                poller.succeed(job)
        db.move("2s")
        assert sweep(db) == {}


def test_different_faults_do_not_open_it(db: Database) -> None:
    db.policy(**POLICY)
    poller = Poller(db)
    for error in (
        "the disk is full",
        "no such customer",
        "certificate expired",
        "quota reached",
        "bad checksum",
        "timed out",
    ):
        db.enqueue()
        poller.fail(poller.one(), error=error)
    assert sweep(db) == {}


def test_a_probe_that_succeeds_resumes_the_kind(db: Database) -> None:
    poller = open_breaker(db)
    poller.succeed(probe(db, poller))
    assert sweep(db) == {"breaker_closed": 1}
    assert events(db) == ["breaker_opened", "breaker_closed"]
    assert len(poller.claim(batch=10).jobs) == 5
    assert sweep(db) == {}


def test_a_probe_that_fails_opens_a_longer_capped_cool_down(db: Database) -> None:
    poller = open_breaker(db, max_attempts=50)
    pauses = []
    for _ in range(5):
        db.admin.execute(
            "update stopline_local.clock "
            "set shift = shift + (select paused_until - stopline.clock() from stopline.kind)"
        )
        db.move("61s")
        (job,) = poller.claim(batch=10).jobs
        poller.store.fail(job.id, job.fence, Failure(Outcome.TRANSIENT, "ServiceUnavailable", "still down"), None)
        assert sweep(db) == {"breaker_extended": 1}
        (kind,) = db.rows("select paused_until from stopline.kind")
        pauses.append((kind["paused_until"] - db.now()).total_seconds())
    assert pauses == [120, 240, 480, 480, 480]


def test_a_probe_that_dies_expires_with_its_lease(db: Database) -> None:
    poller = open_breaker(db)
    job = probe(db, poller)
    db.move("46s")
    assert sweep(db) == {"crashed_to_pending": 1, "breaker_extended": 1}
    db.move("121s")
    (second,) = poller.claim(batch=10).jobs
    assert second.id != job.id or second.fence == job.fence + 1


def test_a_probe_is_never_a_jobs_last_attempt(db: Database) -> None:
    """Without a job that may probe, the kind stays paused until a person resumes it, and the gauges say so."""
    poller = open_breaker(db, max_attempts=2)
    db.move("10m")
    for _ in range(3):
        assert poller.claim(batch=10).status is ClaimStatus.PAUSED
        assert sweep(db) == {}
        db.move("10m")
    (totals,) = db.rows("select stopline.health() -> 'totals' as t")
    # The alarm "late" pages for it: the jobs are due, and nobody may start them.
    assert (totals["t"]["Breakers"], totals["t"]["KindsPaused"], totals["t"]["KindsLate"]) == (1, 1, 1)
    assert Operator(db).resume()[0] == "done"
    assert len(poller.claim(batch=10).jobs) == 6
    assert sweep(db) == {}


def test_two_pollers_share_one_probe(db: Database) -> None:
    open_breaker(db)
    db.move("70s")
    first, second = Poller(db, "w1"), Poller(db, "w2")
    assert len(first.claim(batch=10).jobs) + len(second.claim(batch=10).jobs) == 1


def test_deadlines_hold_while_the_breaker_is_open(db: Database) -> None:
    open_breaker(db, deadline=300)
    db.move("6m")
    assert sweep(db) == {"deadline_passed": 6}


def test_a_persons_pause_is_not_ended_by_the_breaker(db: Database) -> None:
    open_breaker(db)
    Operator(db).pause(until=db.now() + timedelta(hours=5))
    db.move("4h")
    assert sweep(db) == {}
    assert Poller(db).claim().status is ClaimStatus.PAUSED


def test_a_two_hour_outage_with_a_thousand_jobs_abandons_none_that_had_attempts_left(db: Database) -> None:
    """Every minute a poller and a sweep; upstream answers 503 for two hours, then works."""
    db.policy(
        **(
            POLICY
            | {
                "max_elapsed": 86400,
                "breaker_max_cooldown": 1800,
                "retry_cap": 300,
                "isolation": "inline",
                "batch": 100,
            }
        )
    )
    with db.connect("stopline_producer") as producer:
        producer.execute("select count(*) from stopline.enqueue_many('work', array_fill('{}'::jsonb, array[1000]))")
    poller = Poller(db)
    calls = 0
    for minute in range(180):
        down = minute < 120
        while (claim := poller.claim(batch=100)).jobs:
            for job in claim.jobs:
                calls += down
                if down:
                    poller.store.fail(job.id, job.fence, Failure(Outcome.TRANSIENT, "ServiceUnavailable", "503"), None)
                else:
                    poller.succeed(job)
        sweep(db)
        db.move("1m")
    states = {row["state"]: row["n"] for row in db.rows("select state, count(*) as n from stopline.job group by state")}
    assert states == {"succeeded": 1000}
    assert 1000 <= calls <= 1020
    assert events(db)[0] == "breaker_opened"
    assert events(db)[-1] == "breaker_closed"
