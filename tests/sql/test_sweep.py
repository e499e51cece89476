"""What the sweep ends when nobody else will."""

import subprocess
import sys
from typing import Any

import pytest

from stopline.states import ClaimStatus, Outcome
from tests.support.database import Database
from tests.support.poller import Poller, sweep


@pytest.mark.parametrize("cap", [1, 3])
def test_a_crash_on_the_last_attempt_ends_the_job_exactly_once(db: Database, cap: int) -> None:
    """RE-01: never stuck, never claimed again, one transition."""
    db.policy(max_attempts=cap, max_crashes=10, retry_base=1, retry_cap=1)
    made = db.enqueue()
    poller = Poller(db)
    for _ in range(cap):
        poller.one()
        db.move("1h")
        sweep(db)
        db.move("2s")
    for _ in range(10):
        assert sweep(db) == {}
        assert poller.claim().status is ClaimStatus.EMPTY
    row = db.job(made.job_id or 0)
    assert (row["state"], row["stop_reason"], row["attempts"]) == ("abandoned", "attempts_exhausted", cap)
    assert row["finished_at"] is not None
    assert "no answer from w1 by the end of its lease" in row["last_error"]
    stops = db.rows("select action, reason from stopline.event where job_id = %s", row["id"])
    assert [(e["action"], e["reason"]) for e in stops] == [("stopped", "attempts_exhausted")]


def test_a_waiting_row_keeps_its_key_so_a_newer_job_cannot_take_it(db: Database) -> None:
    """RE-05: every state from which a job can become claimable again holds the key; the neighbours move."""
    db.policy(retry_base=1, retry_cap=1)
    first = db.enqueue(key="k")
    others = [db.enqueue() for _ in range(50)]
    Poller(db).claim(batch=51)
    assert db.enqueue(key="k").answer == "open"
    db.move("1h")
    assert sweep(db) == {"crashed_to_pending": 51}
    assert db.enqueue(key="k").job_id == first.job_id
    assert {db.job(job.job_id or 0)["state"] for job in others} == {"pending"}


def test_one_row_that_cannot_be_moved_does_not_stop_its_neighbours(db: Database) -> None:
    """RE-05: here the row's attempt is already written, so that ending it again is refused."""
    db.policy(retry_base=1, retry_cap=1)
    poller = Poller(db)
    ids = [db.enqueue().job_id or 0 for _ in range(3)]
    jobs = poller.claim(batch=3).jobs
    db.admin.execute(
        "insert into stopline.attempt (job_id, fence, kind, round, attempt, started_at, finished_at, worker, outcome) "
        "values (%s, 1, 'work', 1, 1, stopline.clock(), stopline.clock(), 'x', 'succeeded')",
        [ids[1]],
    )
    db.move("1h")
    assert sweep(db) == {"crashed_to_pending": 2, "failed": 1}
    assert [db.job(job.id)["state"] for job in jobs] == ["pending", "claimed", "pending"]


def test_the_lease_outlives_the_attempt_timeout_of_every_kind(db: Database) -> None:
    """RE-06: a long kind is not stolen from a healthy worker by another kind's shorter lease."""
    db.policy("long", timeout=850, margin=15, poller_timeout=900)
    db.policy("short", timeout=5, margin=5)
    db.enqueue("long")
    db.enqueue("short")
    poller = Poller(db)
    poller.one("long")
    poller.one("short")
    db.move("850s")
    assert sweep(db) == {"crashed_to_pending": 1}
    assert {row["kind"]: row["state"] for row in db.rows("select kind, state from stopline.job")} == {
        "long": "claimed",
        "short": "pending",
    }


def test_a_process_that_dies_follows_the_queues_own_rule(db: Database) -> None:
    """RE-09: a handler's own retry rules never see a process death; the lease does."""
    db.policy(timeout=30, retry_base=30, retry_cap=900)
    db.enqueue()
    job = Poller(db, "killed").one()
    db.move("46s")
    sweep(db)
    row = db.job(job.id)
    assert (row["state"], row["crashes"], row["last_outcome"], row["due_rule"]) == ("pending", 1, "crashed", "backoff")
    assert row["due_at"] > db.now()


def test_no_expired_lease_is_left_after_one_period(db: Database) -> None:
    """RE-10: five rows were running when the process was killed; the monitor sees them stuck until the sweep."""
    db.policy(stuck_grace=60)
    for _ in range(5):
        db.enqueue()
    Poller(db).claim(batch=5)
    db.move("1h")
    stuck = "select (stopline.health() -> 'totals' ->> 'Stuck')::int as n"
    assert db.rows(stuck)[0]["n"] == 5
    assert sweep(db) == {"crashed_to_pending": 5}
    assert db.rows(stuck)[0]["n"] == 0
    assert db.rows("select count(*) as n from stopline.job where lease_until <= stopline.clock()")[0]["n"] == 0


def test_swept_rows_come_due_spread_out(db: Database) -> None:
    """FI-12: five hundred leases that expire together must not come back together."""
    db.policy(retry_base=600, retry_cap=600, isolation="inline", batch=500)
    for _ in range(500):
        db.enqueue()
    Poller(db).claim(batch=500)
    db.move("1h")
    sweep(db)
    buckets = db.rows("select count(*) as n from stopline.job group by date_trunc('second', due_at)")
    assert max(bucket["n"] for bucket in buckets) < 20


def test_a_sweep_is_bounded_and_skips_rows_that_others_hold(db: Database) -> None:
    db.policy()
    for _ in range(4):
        db.enqueue()
    jobs = Poller(db).claim(batch=4).jobs
    db.move("1h")
    holder = db.connect("postgres", autocommit=False)
    holder.execute("select from stopline.job where id = %s for update", [jobs[0].id])
    assert sweep(db, limit=2) == {"crashed_to_pending": 2}
    assert db.job(jobs[0].id)["state"] == "claimed"
    holder.rollback()
    assert sweep(db) == {"crashed_to_pending": 2}


def test_a_crash_of_a_job_with_a_cancel_request_cancels_it(db: Database) -> None:
    db.policy()
    db.enqueue()
    job = Poller(db).one()
    db.admin.execute("update stopline.job set cancel_requested_at = stopline.clock()")
    db.move("1h")
    assert sweep(db) == {"crashed_to_cancelled": 1}
    assert db.job(job.id)["stop_reason"] == "cancelled"


def test_an_inline_crash_never_ends_an_innocent_neighbour(db: Database) -> None:
    """Inline, a crash names nobody: batches halve around it until the poison runs alone."""
    db.policy(
        isolation="inline", batch=16, max_attempts=3, max_crashes=2, retry_base=1, retry_cap=1, timeout=1, margin=1
    )
    poison, *innocents = [db.enqueue().job_id or 0 for _ in range(30)]
    poller = Poller(db)
    for _ in range(200):
        claim = poller.claim(batch=16, seconds_left=10)
        if any(job.id == poison for job in claim.jobs):
            db.move("1m")
            sweep(db)
        else:
            for job in claim.jobs:
                poller.succeed(job)
        db.move("2s")
    assert db.job(poison)["stop_reason"] in ("attempts_exhausted", "crashes_exhausted")
    assert {db.job(job_id)["state"] for job_id in innocents} == {"succeeded"}


@pytest.mark.parametrize("options", [{}, {"max_attempts": 1}])
def test_an_inline_job_on_its_last_attempt_runs_alone(db: Database, options: dict[str, Any]) -> None:
    """One crash of a neighbour would end it, also when it has never been in a crash itself."""
    db.policy(isolation="inline", batch=16, max_attempts=3, retry_base=1, retry_cap=1, timeout=1, margin=1)
    poller = Poller(db)
    ids = [db.enqueue(payload={}, **options).job_id or 0 for _ in range(4)]
    for _ in range(0 if options else 2):
        while (claim := poller.claim(batch=16, seconds_left=10)).jobs:
            for job in claim.jobs:
                poller.fail(job)
        db.move("2s")
    fresh = db.enqueue(priority=0).job_id
    claims = [[job.id for job in poller.claim(batch=16, seconds_left=10).jobs] for _ in range(5)]
    assert claims[0] == [fresh]
    assert sorted(claims[1:]) == [[job_id] for job_id in ids]


def test_the_sweep_names_the_first_limit_in_the_order(db: Database) -> None:
    """Deadline before elapsed before money before attempts, whatever the alphabet says."""
    costly = {"per_attempt_usd": "1", "per_job_usd": "9", "deadline": 7200, "max_elapsed": 3600, "retry_base": 1}
    db.policy(**costly, retry_cap=1)  # type: ignore[arg-type]
    job_id = db.enqueue().job_id or 0
    poller = Poller(db)
    poller.fail(poller.one())
    db.admin.execute("update stopline.kind set max_attempts = 1, per_job_usd = 1")
    db.move("3h")
    assert sweep(db) == {"deadline_passed": 1}
    assert db.job(job_id)["stop_reason"] == "deadline_passed"


def test_rows_past_their_elapsed_limit_are_ended_while_they_wait(db: Database) -> None:
    db.policy(max_elapsed=3600, retry_base=600, retry_cap=600)
    job = db.enqueue()
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.TRANSIENT, "upstream is down")
    db.move("2h")
    assert poller.claim().status is ClaimStatus.EMPTY
    assert sweep(db) == {"elapsed_limit": 1}
    row = db.job(job.job_id or 0)
    assert (row["stop_reason"], row["last_error"]) == ("elapsed_limit", "upstream is down")


def test_two_sweepers_of_one_tick_end_each_row_once(db: Database) -> None:
    """CL-12: the schedule may be delivered twice."""
    db.policy()
    for _ in range(20):
        db.enqueue()
    Poller(db).claim(batch=20)
    db.move("1h")
    first = db.connect("stopline_sweeper", autocommit=False)
    swept: dict[str, int] = dict(first.execute("select transition, jobs from stopline.sweep(500)").fetchall())
    assert (swept["crashed_to_pending"], sweep(db)) == (20, {})
    first.commit()
    assert len(db.rows("select job_id from stopline.attempt")) == 20


def test_a_killed_client_leaves_its_claim_to_the_lease(db: Database) -> None:
    """RE-10 with a real process: claimed, killed, and found by the sweep."""
    db.policy(timeout=30)
    job_id = db.enqueue().job_id or 0
    target = db.target()
    code = (
        "import os, signal, psycopg, uuid\n"
        f"conn = psycopg.connect(host={target.host!r}, port={target.port}, dbname={target.dbname!r}, "
        "user='stopline_worker', autocommit=True)\n"
        f"conn.execute(\"select from stopline.claim('work', 'gone', %s, 1, 900, {db.identity!r})\", [uuid.uuid4()])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -9
    assert db.job(job_id)["state"] == "claimed"
    assert sweep(db) == {}
    db.move("46s")
    assert sweep(db) == {"crashed_to_pending": 1}
    assert db.attempts(job_id)[0]["worker"] == "gone"
