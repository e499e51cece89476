"""Handing back a claim whose work has not started."""

import pytest

from stopline.errors import Refused
from stopline.states import FinishAnswer, State
from tests.support.database import Database
from tests.support.poller import Poller


def test_a_release_hands_back_the_attempt_and_the_money_but_not_the_fence(db: Database) -> None:
    """CL-05: a job that never started is charged nothing."""
    db.policy(per_attempt_usd="0.20")
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    finish = poller.release(job)
    row = db.job(job.id)
    assert (finish.state, row["attempts"], row["fence"], row["releases"]) == (State.PENDING, 0, 1, 1)
    assert (row["cost_usd"], db.rows("select usd from stopline.spend")[0]["usd"]) == (0, 0)
    assert row["due_at"] > db.now()
    assert [(a["outcome"], a["error"]) for a in db.attempts(job.id)] == [("released", "no time left")]


def test_a_loop_of_claims_and_releases_ends_at_the_ordinary_cap(db: Database) -> None:
    """CL-05: 1,000 laps of claim and release must not leave a row at 0 attempts."""
    db.policy(max_attempts=3, max_releases=4, retry_base=1, retry_cap=1)
    made = db.enqueue()
    poller = Poller(db)
    laps = 0
    while (claim := poller.claim()).jobs:
        poller.release(claim.jobs[0])
        laps += 1
        db.move("2s")
        assert laps < 50
    row = db.job(made.job_id or 0)
    assert (laps, row["state"], row["stop_reason"], row["attempts"]) == (7, "abandoned", "attempts_exhausted", 3)
    assert row["last_error"] == "no time left"
    assert len(db.attempts(row["id"])) == laps


@pytest.mark.parametrize("trace", ["effect", "step", "checkpoint"])
def test_an_attempt_that_left_a_trace_cannot_be_released(db: Database, trace: str) -> None:
    db.policy(max_steps=5)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    match trace:
        case "effect":
            poller.store.start_effect(job.id, job.fence)
        case "step":
            poller.store.count_step(job.id, job.fence, 1)
        case "checkpoint":
            poller.store.save_checkpoint(job.id, job.fence, "{}")
    with pytest.raises(Refused, match=f"job {job.id}: attempt 1 has recorded an effect, a step or a checkpoint"):
        poller.release(job)
    assert db.job(job.id)["attempts"] == 1


def test_an_earlier_attempts_checkpoint_does_not_forbid_a_release(db: Database) -> None:
    db.policy(retry_base=1, retry_cap=1)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    poller.store.save_checkpoint(job.id, job.fence, '{"page": 3}')
    poller.fail(job)
    db.move("2s")
    job = poller.one()
    assert job.checkpoint == {"page": 3}
    assert poller.release(job).state is State.PENDING


def test_a_late_success_of_a_released_attempt_does_not_count(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    poller.release(job)
    assert poller.succeed(job).answer is FinishAnswer.LATE
    assert db.job(job.id)["state"] == "pending"


def test_a_claim_that_never_ran_starts_no_elapsed_time(db: Database) -> None:
    """The pollers' outage after it must not end a job that nobody ran."""
    db.policy(max_elapsed=7200)
    job_id = db.enqueue().job_id or 0
    poller = Poller(db)
    poller.release(poller.one())
    assert (db.job(job_id)["round_started_at"], db.job(job_id)["give_up_at"]) == (None, None)
    db.move("3h")
    assert poller.one().attempt == 1


def test_repeating_a_release_hands_back_nothing_more(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    poller.release(job)
    before = db.job(job.id)
    assert poller.release(job).answer is FinishAnswer.ALREADY
    assert db.job(job.id) == before
