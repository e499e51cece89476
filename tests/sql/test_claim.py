"""What one claim hands out."""

from concurrent.futures import wait
from uuid import uuid4

import psycopg
import pytest

from stopline.errors import InvalidInput
from stopline.states import ClaimStatus, Outcome
from tests.support.blocking import in_background, wait_until_blocked
from tests.support.database import Database
from tests.support.poller import Poller, sweep


def test_a_claim_counts_the_attempt_and_writes_the_lease_before_the_work(db: Database) -> None:
    db.policy(timeout=30, margin=15)
    db.freeze()
    made = db.enqueue(payload={"n": 1})
    job = Poller(db).one()
    row = db.job(job.id)
    assert (row["state"], row["attempts"], row["fence"]) == ("claimed", 1, 1)
    assert (row["lease_until"] - db.now()).total_seconds() == 45
    assert (job.id, job.payload, job.attempt, job.attempts_left) == (made.job_id, {"n": 1}, 1, 4)


def test_due_jobs_are_claimed_by_priority_then_age(db: Database) -> None:
    db.policy()
    late = db.enqueue(priority=3)
    first = db.enqueue(priority=2)
    second = db.enqueue(priority=2)
    urgent = db.enqueue(priority=0)
    poller = Poller(db)
    order = [poller.one().id for _ in range(4)]
    assert order == [urgent.job_id, first.job_id, second.job_id, late.job_id]


def test_a_claim_hands_out_no_more_than_it_was_asked_for(db: Database) -> None:
    db.policy()
    for priority in (0, 1, 2, 3) * 3:
        db.enqueue(priority=priority)
    assert len(Poller(db).claim(batch=5).jobs) == 5
    assert len(db.rows("select id from stopline.job where state = 'claimed'")) == 5


def test_a_job_is_not_claimed_before_it_is_due(db: Database) -> None:
    db.policy()
    db.freeze()
    job = db.enqueue()
    db.admin.execute("update stopline.job set due_at = due_at + interval '1 hour'")
    poller = Poller(db)
    assert poller.claim().status is ClaimStatus.EMPTY
    db.move("1h")
    assert poller.one().id == job.job_id


def test_a_repeated_claim_returns_the_same_rows_and_counts_nothing(db: Database) -> None:
    db.policy()
    for _ in range(4):
        db.enqueue()
    token = uuid4()
    first = Poller(db).claim(batch=2, token=token)
    again = Poller(db).claim(batch=2, token=token)
    assert [job.id for job in again.jobs] == [job.id for job in first.jobs]
    assert [row["attempts"] for row in db.rows("select attempts from stopline.job order by id")] == [1, 1, 0, 0]


def test_a_repeat_that_overtakes_its_first_call_waits_for_it(db: Database) -> None:
    db.policy()
    for _ in range(4):
        db.enqueue()
    token = uuid4()
    call = "select job_id from stopline.claim('work', 'w1', %s, 2, 900, %s)"
    first = db.connect(autocommit=False)
    taken = first.execute(call, [token, db.identity]).fetchall()
    second = db.connect()
    with in_background(lambda: second.execute(call, [token, db.identity]).fetchall()) as repeat:
        wait_until_blocked(db.admin, second.info.backend_pid)
        first.commit()
        assert repeat.result() == taken
    assert len(db.rows("select id from stopline.job where state = 'claimed'")) == 2


def test_one_undecodable_row_does_not_cost_its_neighbours_the_claim(db: Database) -> None:
    """CL-01: the middle row holds a 5,000-digit integer that Python refuses to read."""
    db.policy()
    ids = [db.enqueue().job_id for _ in range(3)]
    db.admin.execute(
        "update stopline.job_data set payload = jsonb_build_object('n', repeat('9', 5000)::numeric) where job_id = %s",
        [ids[1]],
    )
    claim = Poller(db).claim(batch=3)
    assert [job.id for job in claim.jobs] == [ids[0], ids[2]]
    assert [(bad.id, bad.column) for bad in claim.unreadable] == [(ids[1], "payload")]


def test_a_pending_row_at_its_cap_is_skipped_and_swept(db: Database) -> None:
    """CL-03: such a row can only come from before its constraint; it must not break the claim for everybody."""
    db.policy(max_attempts=3)
    db.admin.execute("alter table stopline.job drop constraint pending_row_is_below_its_cap")
    db.admin.execute("drop trigger job_pending_at_cap on stopline.job")
    capped, healthy = db.enqueue(), db.enqueue()
    db.admin.execute("update stopline.job set attempts = 3 where id = %s", [capped.job_id])
    claim = Poller(db).claim(batch=2)
    assert [job.id for job in claim.jobs] == [healthy.job_id]
    assert sweep(db) == {"attempts_exhausted": 1}
    row = db.job(capped.job_id or 0)
    assert (row["state"], row["stop_reason"], row["attempts"]) == ("abandoned", "attempts_exhausted", 3)


def test_the_largest_cap_is_claimed_beside_normal_rows_and_a_larger_one_is_refused(db: Database) -> None:
    """CL-04: no counter is too narrow for the caps that are accepted."""
    db.policy(max_attempts=1000)
    long_lived, normal = db.enqueue(), db.enqueue()
    db.admin.execute("update stopline.job set attempts = 999, fence = 40000 where id = %s", [long_lived.job_id])
    claim = Poller(db).claim(batch=2)
    assert {job.id for job in claim.jobs} == {long_lived.job_id, normal.job_id}
    with pytest.raises(psycopg.errors.CheckViolation, match="cap_is_1_to_1000"):
        db.admin.execute("update stopline.job set max_attempts = 1001")


def test_expired_leases_do_not_count_as_running(db: Database) -> None:
    """CL-06: a dead worker's row must not block its own recovery."""
    db.policy(concurrency=1, timeout=30, margin=15)
    db.enqueue()
    db.enqueue()
    poller = Poller(db)
    poller.one()
    assert poller.claim().status is ClaimStatus.FULL
    db.move(seconds=46)
    assert len(poller.claim().jobs) == 1


def test_a_claim_never_takes_another_kind(db: Database) -> None:
    """CL-11: a poller claims only the kinds that it has code for; the others keep waiting, visibly."""
    db.policy("work")
    db.policy("newer")
    job = db.enqueue("newer")
    poller = Poller(db)
    assert poller.claim("work").status is ClaimStatus.EMPTY
    row = db.job(job.job_id or 0)
    assert (row["state"], row["attempts"]) == ("pending", 0)
    with pytest.raises(InvalidInput, match="'unheard_of' is not known to this database"):
        poller.claim("unheard_of")


def test_two_pollers_of_one_tick_share_the_rows(db: Database) -> None:
    """CL-12: a schedule that is delivered twice starts two pollers at the same instant."""
    db.policy()
    for _ in range(10):
        db.enqueue()
    first, second = db.connect(autocommit=False), db.connect()
    call = "select job_id from stopline.claim('work', %s, %s, 10, 900, %s)"
    taken = first.execute(call, ["w1", uuid4(), db.identity]).fetchall()
    rest = second.execute(call, ["w2", uuid4(), db.identity]).fetchall()
    first.commit()
    assert (len(taken), rest) == (10, [(None,)])
    assert {row["attempts"] for row in db.rows("select attempts from stopline.job")} == {1}


def test_due_times_and_leases_know_only_the_database_clock(db: Database) -> None:
    """CL-15: the worker's clock appears in no comparison; only the database's time decides."""
    db.policy(timeout=30, margin=15, retry_base=30)
    job = db.enqueue()
    poller = Poller(db)
    claimed = poller.one()
    row = db.job(claimed.id)
    assert row["lease_until"] > db.now()
    assert row["due_at"] >= row["created_at"]
    finish = poller.fail(claimed)
    row = db.job(job.job_id or 0)
    assert row["due_at"] > db.now()
    assert finish.state == "pending"
    assert poller.claim().status is ClaimStatus.EMPTY
    db.move("30s")
    assert poller.one().id == job.job_id


def test_a_limited_kind_serialises_its_claims_on_its_own_row(db: Database) -> None:
    db.policy(concurrency=3)
    for _ in range(8):
        db.enqueue()
    first, second = db.connect(autocommit=False), db.connect()
    call = "select status, job_id from stopline.claim('work', %s, %s, 4, 900, %s)"
    taken = first.execute(call, ["w1", uuid4(), db.identity]).fetchall()
    with in_background(lambda: second.execute(call, ["w2", uuid4(), db.identity]).fetchall()) as other:
        wait_until_blocked(db.admin, second.info.backend_pid)
        first.commit()
        wait([other])
        assert (len(taken), other.result()) == (3, [("full", None)])


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_claim_with_an_old_view_fails_rather_than_pass_the_limit(db: Database, isolation: str) -> None:
    """Such a claim counts what ran when its transaction began; the lock alone does not show it more."""
    db.policy(concurrency=4)
    for _ in range(4):
        db.enqueue()
    old = db.connect(autocommit=False)
    old.execute(f"set transaction isolation level {isolation}")
    old.execute("select 1")
    for _ in range(4):
        db.enqueue(priority=0)
    assert len(Poller(db).claim(batch=4).jobs) == 4
    with pytest.raises(psycopg.errors.SerializationFailure):
        old.execute("select from stopline.claim('work', 'w2', %s, 4, 900, %s)", [uuid4(), db.identity])
    old.rollback()
    assert len(db.rows("select id from stopline.job where state = 'claimed'")) == 4


def test_an_inline_lease_is_no_longer_than_the_poller_can_run(db: Database) -> None:
    db.policy(isolation="inline", batch=10, timeout=1, margin=5, poller_timeout=60)
    db.enqueue()
    (job,) = Poller(db).claim(seconds_left=1e9).jobs
    assert job.lease_seconds == 65


def test_a_claim_for_another_installation_is_refused(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    claim = poller.store.claim("work", "w1", uuid4(), 1, 900, "the-original-this-was-restored-from")
    assert (claim.status, claim.jobs) == (ClaimStatus.FOREIGN, [])
    assert poller.claim().status is ClaimStatus.OK


def test_an_invocation_with_too_little_time_for_an_attempt_claims_nothing(db: Database) -> None:
    db.policy(timeout=30)
    db.enqueue()
    assert Poller(db).claim(seconds_left=29).status is ClaimStatus.EMPTY


def test_a_job_past_its_deadline_is_not_started_and_ends_with_that_reason(db: Database) -> None:
    db.policy(deadline=3600)
    job = db.enqueue()
    db.move("1h")
    assert Poller(db).claim().status is ClaimStatus.EMPTY
    assert sweep(db) == {"deadline_passed": 1}
    row = db.job(job.job_id or 0)
    assert (row["state"], row["stop_reason"], row["attempts"]) == ("abandoned", "deadline_passed", 0)
    assert "the deadline was" in row["last_error"]


def test_the_effect_key_is_the_same_in_every_attempt(db: Database) -> None:
    db.policy(retry_base=1, retry_cap=1)
    db.enqueue(key="k")
    poller = Poller(db)
    first = poller.one()
    poller.fail(first, Outcome.TRANSIENT)
    db.move("2s")
    second = poller.one()
    assert (first.id, first.effect_key) == (second.id, second.effect_key)
    assert first.effect_key.endswith(f"-{first.id}")
