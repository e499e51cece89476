"""How an attempt ends, and what a late word about it may still change."""

import random
from typing import Any

import pytest

from stopline.errors import LeaseLost
from stopline.states import FinishAnswer, Outcome, State, StopReason
from stopline.store.worker import Success
from tests.support.database import Database
from tests.support.poller import Poller, sweep


def expire(db: Database) -> None:
    """Moves past every lease and sweeps."""
    db.move("1h")
    sweep(db)


def test_success_is_terminal_frees_the_key_and_writes_one_attempt(db: Database) -> None:
    db.policy()
    db.enqueue(key="k")
    poller = Poller(db)
    job = poller.one()
    finish = poller.succeed(job, result='{"ok": true}')
    row = db.job(job.id)
    assert (finish.answer, finish.state, finish.stop_reason) == ("recorded", "succeeded", "completed")
    assert (row["state"], row["holds_key"], row["result"], row["lease_until"]) == (
        "succeeded",
        False,
        {"ok": True},
        None,
    )
    assert [(a["attempt"], a["fence"], a["outcome"]) for a in db.attempts(job.id)] == [(1, 1, "succeeded")]


def test_a_transient_failure_waits_for_its_backoff_and_says_which_rule_set_it(db: Database) -> None:
    db.policy(retry_base=30, retry_cap=900)
    db.enqueue()
    db.freeze()
    poller = Poller(db)
    for attempt, longest in ((1, 30), (2, 60), (3, 120)):
        job = poller.one()
        finish = poller.fail(job)
        row = db.job(job.id)
        delay = (row["due_at"] - db.now()).total_seconds()
        assert longest / 2 <= delay <= longest
        assert (row["attempts"], row["due_rule"], row["last_error"]) == (attempt, "backoff", "the model is busy")
        assert finish.due_at is not None
        db.move(seconds=delay)


def test_a_receivers_retry_after_is_honoured_up_to_the_cap(db: Database) -> None:
    db.policy(retry_base=1, retry_cap=600, max_attempts=10)
    db.enqueue()
    db.freeze()
    poller = Poller(db)
    for asked, low, high in ((120, 120, 150), (86_400, 540, 600)):
        job = poller.one()
        poller.fail(job, retry_after=asked)
        row = db.job(job.id)
        delay = (row["due_at"] - db.now()).total_seconds()
        assert low <= delay <= high, (asked, delay)
        assert row["due_rule"] == "retry_after"
        db.move(seconds=delay)


def test_backoff_never_overflows_and_never_passes_its_cap(db: Database) -> None:
    """FI-05: the exponent is clamped before the power is taken."""
    rows = db.rows(
        "select n, extract(epoch from stopline.backoff(n, interval '1 day', interval '6 hours')) as delay "
        "from unnest(array[0, 1, 31, 32, 47, 64, 1000, 1100, 1000000]) as n"
    )
    assert len(rows) == 9
    assert all(6 * 3600 / 2 <= row["delay"] <= 6 * 3600 for row in rows)


def test_a_permanent_failure_ends_the_job_at_once(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    poller.fail(job, Outcome.PERMANENT, "no such conversation")
    row = db.job(job.id)
    assert (row["state"], row["stop_reason"], row["attempts"]) == ("abandoned", "permanent_failure", 1)
    assert row["last_error"] == "no such conversation"


def test_the_last_attempts_failure_ends_the_job_with_the_reason_of_every_attempt_kept(db: Database) -> None:
    db.policy(max_attempts=3, retry_base=1, retry_cap=1)
    job_id = db.enqueue().job_id or 0
    poller = Poller(db)
    for n in range(3):
        poller.fail(poller.one(), error=f"fault number {n}")
        db.move("2s")
    row = db.job(job_id)
    assert (row["state"], row["stop_reason"], row["attempts"]) == ("abandoned", "attempts_exhausted", 3)
    assert [a["error"] for a in db.attempts(job_id)] == ["fault number 0", "fault number 1", "fault number 2"]
    assert db.attempts(job_id)[-1]["next_due_at"] is None


def test_attempts_without_an_answer_have_a_smaller_cap_of_their_own(db: Database) -> None:
    db.policy(max_attempts=5, max_crashes=2, retry_base=1, retry_cap=1)
    job_id = db.enqueue().job_id or 0
    poller = Poller(db)
    for outcome in (Outcome.TIMEOUT, Outcome.TRANSIENT, Outcome.CRASHED):
        poller.fail(poller.one(), outcome)
        db.move("2s")
    row = db.job(job_id)
    assert (row["state"], row["stop_reason"], row["attempts"], row["crashes"]) == (
        "abandoned",
        "crashes_exhausted",
        3,
        2,
    )


def test_a_retry_that_could_only_start_after_a_limit_is_not_scheduled(db: Database) -> None:
    db.policy("deadline", deadline=60, retry_base=300, retry_cap=300)
    db.policy("elapsed", max_elapsed=120, retry_base=300, retry_cap=300)
    poller = Poller(db)
    for kind, reason in (("deadline", "deadline_passed"), ("elapsed", "elapsed_limit")):
        db.enqueue(kind)
        finish = poller.fail(poller.one(kind))
        assert (finish.state, finish.stop_reason, finish.due_at) == (State.ABANDONED, reason, None)


def test_when_several_limits_meet_the_first_in_the_order_is_named(db: Database) -> None:
    limits: dict[str, Any] = {
        "deadline": 60,
        "max_elapsed": 60,
        "per_attempt_usd": "1",
        "per_job_usd": "1",
        "max_crashes": 1,
        "max_attempts": 1,
    }
    names = ["deadline_passed", "elapsed_limit", "budget_exhausted", "crashes_exhausted", "attempts_exhausted"]
    removed = ["deadline", "max_elapsed", "per_job_usd", "max_crashes"]
    poller = Poller(db)
    for reason, next_removed in zip(names, [*removed, None], strict=True):
        db.policy(**{**limits, "retry_base": 300, "retry_cap": 300})
        db.enqueue()
        assert poller.fail(poller.one(), Outcome.CRASHED).stop_reason == reason
        if next_removed == "max_crashes":
            limits["max_crashes"] = 9
        elif next_removed:
            del limits[next_removed]


def test_elapsed_time_runs_from_the_first_claim_not_from_the_enqueue(db: Database) -> None:
    db.policy(max_elapsed=3600)
    db.enqueue()
    db.move("10h")
    assert sweep(db) == {}
    assert Poller(db).one().attempt == 1


def test_a_repeated_finish_is_answered_already_and_changes_nothing(db: Database) -> None:
    db.policy()
    db.enqueue()
    db.enqueue()
    poller = Poller(db)
    failed, done = poller.one(), poller.one()
    poller.fail(failed)
    before = db.job(failed.id)
    assert poller.fail(failed).answer is FinishAnswer.ALREADY
    assert db.job(failed.id) == before
    poller.succeed(done)
    assert poller.succeed(done).answer is FinishAnswer.ALREADY
    assert len(db.attempts(failed.id)) == len(db.attempts(done.id)) == 1


@pytest.mark.parametrize("second", ["w1", "w2"])
def test_a_late_finish_never_overwrites_a_newer_attempt(db: Database, second: str) -> None:
    """FI-04: the fence decides, not the worker's name: the newer claim may be the same warm function's."""
    db.policy(retry_base=1, retry_cap=1)
    db.enqueue()
    first = Poller(db, "w1")
    old = first.one()
    expire(db)
    db.move("2s")
    Poller(db, second).one()
    assert first.succeed(old).answer is FinishAnswer.LATE
    row = db.job(old.id)
    assert (row["state"], row["attempts"], row["fence"]) == ("claimed", 2, 2)
    (attempt,) = db.attempts(old.id)
    assert (attempt["outcome"], attempt["late_outcome"]) == ("crashed", "succeeded")


def test_a_late_failure_changes_no_state_and_is_written_once(db: Database) -> None:
    """FI-04, the variant in which the old attempt reports a failure."""
    db.policy(retry_base=1, retry_cap=1)
    db.enqueue()
    poller = Poller(db)
    old = poller.one()
    expire(db)
    before = db.job(old.id)
    assert poller.fail(old, error="too slow").answer is FinishAnswer.LATE
    assert poller.fail(old, error="said again").answer is FinishAnswer.ALREADY
    assert db.job(old.id) == before
    assert [(a["late_outcome"], a["late_error"]) for a in db.attempts(old.id)] == [("transient", "too slow")]


def test_a_late_failure_does_not_end_the_newer_attempt_that_is_running(db: Database) -> None:
    """FI-04: a failure needs its fence as much as a success does."""
    db.policy(retry_base=1, retry_cap=1)
    db.enqueue()
    first = Poller(db, "w1")
    old = first.one()
    expire(db)
    db.move("2s")
    new = Poller(db, "w2").one()
    assert first.fail(old).answer is FinishAnswer.LATE
    row = db.job(old.id)
    assert (row["state"], row["fence"], row["claimed_by"]) == ("claimed", new.fence, "w2")


def test_a_late_success_of_an_older_attempt_does_not_end_a_job_that_failed_since(db: Database) -> None:
    """FI-04: only the newest attempt's word is the truth; an older one's is kept for a person."""
    db.policy(retry_base=1, retry_cap=1)
    db.enqueue()
    poller = Poller(db)
    old = poller.one()
    expire(db)
    db.move("2s")
    poller.fail(poller.one())
    assert poller.succeed(old).answer is FinishAnswer.LATE
    assert db.job(old.id)["state"] == "pending"
    assert [a["late_outcome"] for a in db.attempts(old.id)] == ["succeeded", None]


def test_a_late_success_with_the_newest_fence_is_the_truth(db: Database) -> None:
    db.policy()
    db.enqueue(key="k")
    poller = Poller(db)
    job = poller.one()
    expire(db)
    assert db.job(job.id)["state"] == "pending"
    assert poller.succeed(job, result="1").answer is FinishAnswer.RECORDED
    row = db.job(job.id)
    assert (row["state"], row["stop_reason"], row["holds_key"], row["result"]) == ("succeeded", "completed", False, 1)
    assert [a["outcome"] for a in db.attempts(job.id)] == ["crashed"]


def test_a_late_success_is_the_truth_also_after_another_late_word(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    expire(db)
    assert poller.fail(job).answer is FinishAnswer.LATE
    assert poller.succeed(job).answer is FinishAnswer.RECORDED
    assert db.job(job.id)["state"] == "succeeded"


def test_a_late_success_on_an_abandoned_job_is_kept_for_a_person(db: Database) -> None:
    """FI-04: a late success is not silently lost, and does not undo a stop either."""
    db.policy(max_attempts=1)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    expire(db)
    assert poller.succeed(job).answer is FinishAnswer.LATE
    assert db.job(job.id)["state"] == "abandoned"
    assert [a["late_outcome"] for a in db.attempts(job.id)] == ["succeeded"]


def test_an_unknown_outcome_is_never_retried(db: Database) -> None:
    db.policy(idempotent=False, settle=120, review_within=86400)
    db.freeze()
    poller = Poller(db)
    for outcome in (Outcome.CRASHED, Outcome.TIMEOUT, Outcome.UNCERTAIN):
        db.enqueue()
        job = poller.one()
        assert poller.fail(job, outcome).state is State.UNCERTAIN
        row = db.job(job.id)
        assert (row["state"], row["due_rule"], row["finished_at"]) == ("uncertain", "check", None)
        assert (row["next_check_at"] - db.now()).total_seconds() == 120
        assert (row["review_by"] - db.now()).total_seconds() == 86400
    db.move("10d")
    assert poller.claim().jobs == []


def test_an_idempotent_kinds_crash_is_retried_but_its_uncertain_outcome_is_not(db: Database) -> None:
    db.policy(idempotent=True)
    poller = Poller(db)
    for outcome, state in ((Outcome.CRASHED, State.PENDING), (Outcome.UNCERTAIN, State.UNCERTAIN)):
        db.enqueue()
        assert poller.fail(poller.one(), outcome).state is state


def test_a_stamped_kind_is_retried_after_a_crash_only_while_its_stamp_is_missing(db: Database) -> None:
    db.policy(idempotent=False, effect="stamped", retry_base=1, retry_cap=1)
    db.enqueue()
    poller = Poller(db)
    assert poller.fail(poller.one(), Outcome.CRASHED).state is State.PENDING
    db.move("2s")
    job = poller.one()
    poller.store.start_effect(job.id, job.fence)
    assert poller.fail(job, Outcome.CRASHED).state is State.UNCERTAIN


def test_the_next_claim_clears_the_stamp(db: Database) -> None:
    db.policy(idempotent=False, effect="stamped", retry_base=1, retry_cap=1, max_crashes=5)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    poller.store.start_effect(job.id, job.fence)
    poller.fail(job, Outcome.TRANSIENT)
    db.move("2s")
    assert poller.fail(poller.one(), Outcome.CRASHED).state is State.PENDING


def test_a_stamp_after_the_lease_is_refused(db: Database) -> None:
    db.policy(timeout=30, margin=15)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    db.move("46s")
    with pytest.raises(LeaseLost, match="no longer holds it"):
        poller.store.start_effect(job.id, job.fence)


def test_one_result_that_the_database_refuses_does_not_undo_its_neighbours(db: Database) -> None:
    """FI-09: the work is done; a result that jsonb refuses is replaced by a marker."""
    db.policy(isolation="inline", batch=10)
    for _ in range(3):
        db.enqueue()
    poller = Poller(db)
    jobs = poller.claim(batch=3).jobs
    results = ["1", '"\\u0000"', "3"]
    finishes = poller.store.succeed([Success(j.id, j.fence, r, None) for j, r in zip(jobs, results, strict=True)])
    assert {finish.state for finish in finishes} == {State.SUCCEEDED}
    stored = [db.job(job.id)["result"] for job in jobs]
    assert stored[0] == 1
    assert stored[2] == 3
    assert stored[1]["stopline"] == "result not stored"


def test_cancel_requested_while_running_never_returns_to_pending(db: Database) -> None:
    db.policy(idempotent=False)
    poller = Poller(db)
    for outcome, state, reason in (
        (Outcome.TRANSIENT, State.CANCELLED, StopReason.CANCELLED),
        (Outcome.UNCERTAIN, State.UNCERTAIN, None),
    ):
        db.enqueue()
        job = poller.one()
        db.admin.execute("update stopline.job set cancel_requested_at = stopline.clock() where id = %s", [job.id])
        finish = poller.fail(job, outcome)
        assert (finish.state, finish.stop_reason) == (state, reason)


def test_success_after_a_cancel_request_stays_and_says_that_the_cancel_came_too_late(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    db.admin.execute("update stopline.job set cancel_requested_at = stopline.clock()")
    assert poller.succeed(job).state is State.SUCCEEDED
    assert [e["action"] for e in db.rows("select action from stopline.event where job_id = %s", job.id)] == [
        "cancel_too_late"
    ]


def test_no_backoff_of_any_policy_passes_its_cap_or_fails(db: Database) -> None:
    """FI-05: attempts from 0 to a million against hostile bases and caps, drawn with a fixed seed."""
    draw = random.Random(20261129)
    spans = [0.1, 1.0, 30.0, 900.0, 86_400.0, 604_800.0]
    cases = [(draw.randrange(0, 10**6 + 1), draw.choice(spans), draw.choice(spans)) for _ in range(3000)]
    cases += [(n, base, cap) for n in (0, 1, 2, 31, 32, 63, 64, 1024, 10**6) for base in spans for cap in spans]
    attempts, bases, caps = (list(column) for column in zip(*cases, strict=True))
    delays = db.rows(
        "select c.n, c.base, c.cap, extract(epoch from stopline.backoff(c.n, make_interval(secs => c.base), "
        "make_interval(secs => c.cap)))::float8 as delay "
        "from unnest(%s::int[], %s::float8[], %s::float8[]) as c(n, base, cap)",
        attempts,
        bases,
        caps,
    )
    assert len(delays) == len(cases)
    for row in delays:
        whole = min(row["cap"], row["base"] * 2.0 ** min(max(row["n"], 1) - 1, 60))
        assert whole / 2 - 1e-5 <= row["delay"] <= whole + 1e-5, row


@pytest.mark.parametrize("attempt", [1, 2, 500, 999])
def test_a_failure_is_recorded_at_any_attempt_of_a_hostile_policy(db: Database, attempt: int) -> None:
    """FI-05: the finish commits, and the next due time can be read."""
    db.policy(max_attempts=1000, retry_base=86_400, retry_cap=604_800)
    job_id = db.enqueue().job_id or 0
    db.admin.execute("update stopline.job set attempts = %s where id = %s", [attempt - 1, job_id])
    poller = Poller(db)
    finish = poller.fail(poller.one(), retry_after=1e9)
    assert finish.answer is FinishAnswer.RECORDED
    delay = (db.job(job_id)["due_at"] - db.now()).total_seconds()
    assert 0 < delay <= 604_800
