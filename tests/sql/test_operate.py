"""What named people do, under audit."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import psycopg
import pytest

from stopline.states import ClaimStatus, EnqueueAnswer, Outcome, State
from tests.support.database import Database
from tests.support.operator import Operator, events
from tests.support.poller import Poller, sweep


def abandoned(db: Database, **options: object) -> int:
    """A job of the kind `work` that was stopped at its cap."""
    job_id = db.enqueue(**options).job_id or 0  # type: ignore[arg-type]
    Poller(db).fail(Poller(db).one(), Outcome.PERMANENT, "no such thing")
    assert db.job(job_id)["state"] == "abandoned"
    return job_id


@contextmanager
def refused(sqlstate: str, match: str) -> Iterator[None]:
    """The engine's own refusal, by its code and its words."""
    with pytest.raises(psycopg.Error, match=match) as error:
        yield
    assert error.value.sqlstate == sqlstate


def test_a_waiting_job_is_cancelled_once_and_says_by_whom(db: Database) -> None:
    db.policy()
    job = db.enqueue(key="k").job_id or 0
    ada = Operator(db)
    assert ada.cancel(job) == ("done", "cancelled", "cancelled")
    assert ada.cancel(job) == ("already_done", "cancelled", "cancelled")
    (event,) = db.rows("select * from stopline.event where job_id = %s", job)
    assert (event["action"], event["actor"], event["reason"]) == ("cancelled", "ada", "not needed any more")
    assert event["before"]["state"] == "pending"
    assert db.enqueue(key="k").answer is EnqueueAnswer.HELD
    assert Poller(db).claim().status is ClaimStatus.EMPTY


@pytest.mark.parametrize(
    ("outcome", "state"), [(Outcome.TRANSIENT, "cancelled"), (Outcome.CRASHED, "cancelled"), (None, "succeeded")]
)
def test_cancelling_a_running_job_is_a_request_that_its_attempt_decides(
    db: Database, outcome: Outcome | None, state: str
) -> None:
    """OP-03: never requeued after a cancel; one cancel in the audit; success stays success."""
    db.policy()
    job = db.enqueue().job_id or 0
    poller, ada = Poller(db), Operator(db)
    claimed = poller.one()
    assert ada.cancel(job) == ("requested", "claimed", None)
    assert ada.cancel(job) == ("already_done", "claimed", None)
    if outcome is None:
        poller.succeed(claimed)
    else:
        poller.fail(claimed, outcome)
    assert db.job(job)["state"] == state
    assert events(db, job).count("cancel_requested") == 1


def test_the_sweep_honours_a_cancel_request(db: Database) -> None:
    """OP-03: also when the worker died."""
    db.policy()
    job = db.enqueue().job_id or 0
    Poller(db).one()
    Operator(db).cancel(job)
    db.move("1h")
    assert sweep(db) == {"crashed_to_cancelled": 1}


def test_cancelling_an_uncertain_job_needs_a_statement_about_its_effect(db: Database) -> None:
    db.policy(idempotent=False)
    job = db.enqueue().job_id or 0
    poller, ada = Poller(db), Operator(db)
    poller.fail(poller.one(), Outcome.UNCERTAIN)
    with refused("SL001", "effects_checked: job .* is uncertain"):
        ada.cancel(job)
    assert ada.cancel(job, checked="the connector has no such batch")[0] == "done"


def test_an_ended_job_cannot_be_cancelled(db: Database) -> None:
    db.policy()
    job = abandoned(db)
    with refused("SL002", "has ended"):
        Operator(db).cancel(job)


def test_a_replay_opens_a_new_round_and_keeps_the_history(db: Database) -> None:
    """OP-02: new attempts, old ones still shown with their errors, and who replayed."""
    db.policy(max_attempts=3, retry_base=1, retry_cap=1)
    job = db.enqueue().job_id or 0
    poller, ada = Poller(db), Operator(db)
    for n in range(3):
        poller.fail(poller.one(), error=f"fault {n}")
        db.move("2s")
    assert ada.replay(job) == ("done", "pending", None)
    claimed = poller.one()
    assert (claimed.attempt, claimed.fence, claimed.attempts_left) == (1, 4, 2)
    poller.fail(claimed, error="once more")
    assert [(a["round"], a["attempt"], a["error"]) for a in db.attempts(job)] == [
        (1, 1, "fault 0"),
        (1, 2, "fault 1"),
        (1, 3, "fault 2"),
        (2, 1, "once more"),
    ]
    assert events(db, job) == ["stopped", "replayed"]
    row = db.job(job)
    assert (row["attempts"], row["crashes"], row["round"], row["state"]) == (1, 0, 2, "pending")


def test_a_replay_said_twice_opens_one_round(db: Database) -> None:
    db.policy()
    job = abandoned(db)
    ada = Operator(db)
    assert [ada.replay(job)[0], ada.replay(job)[0]] == ["done", "already_done"]
    assert db.job(job)["round"] == 2


def test_a_replay_uses_todays_policy(db: Database) -> None:
    db.policy(max_attempts=2)
    job = abandoned(db)
    db.policy(max_attempts=7, per_attempt_usd="0.10", per_job_usd="5")
    Operator(db).replay(job)
    row = db.job(job)
    assert (row["max_attempts"], row["cost_usd"]) == (7, 0)


def test_a_replay_past_its_deadline_needs_a_new_one(db: Database) -> None:
    db.policy(deadline=3600)
    job = abandoned(db)
    db.move("2h")
    ada = Operator(db)
    with refused("SL002", "its deadline was"):
        ada.replay(job)
    assert ada.replay(job, deadline=db.now() + timedelta(hours=1))[0] == "done"


def test_a_replay_while_another_job_has_the_key_is_refused_naming_that_job(db: Database) -> None:
    """RE-05: no unique violation escapes."""
    db.policy()
    job = abandoned(db, key="k")
    ada = Operator(db)
    ada.release_key(job)
    newer = db.enqueue(key="k").job_id
    with refused("SL002", f"its key 'k' is held by job {newer}"):
        ada.replay(job)


@pytest.mark.parametrize("state", ["pending", "succeeded", "uncertain"])
def test_only_a_stopped_job_is_replayed(db: Database, state: str) -> None:
    """OP-04: succeeded work is never run again."""
    db.policy(idempotent=False)
    job = db.enqueue().job_id or 0
    poller = Poller(db)
    if state == "succeeded":
        poller.succeed(poller.one())
    elif state == "uncertain":
        poller.fail(poller.one(), Outcome.UNCERTAIN)
    with refused("SL002", "only an abandoned or cancelled job"):
        Operator(db).replay(job)


def test_a_hand_edit_to_pending_is_refused_with_the_way_that_is_open(db: Database) -> None:
    """OP-01: no row rests in pending at its cap."""
    db.policy(max_attempts=1)
    db.enqueue()
    poller = Poller(db)
    poller.fail(poller.one())
    with pytest.raises(psycopg.errors.CheckViolation) as error:
        db.admin.execute("update stopline.job set state = 'pending', finished_at = null, stop_reason = null")
    assert "stopline.replay" in (error.value.diag.message_hint or "")


def test_a_person_settles_an_unknown_outcome(db: Database) -> None:
    db.policy(idempotent=False, retry_base=1, retry_cap=1)
    poller, ada = Poller(db), Operator(db)
    for answer, state in (("applied", State.SUCCEEDED), ("not_applied", State.PENDING)):
        job = db.enqueue().job_id or 0
        poller.fail(poller.one(), Outcome.UNCERTAIN)
        assert ada.reconcile(job, answer)[:2] == ("done", state)
        before = events(db, job)
        if answer == "applied":
            assert ada.reconcile(job, answer)[0] == "already_done"
        assert events(db, job) == before


def test_not_applied_ends_a_job_that_has_no_attempts_left(db: Database) -> None:
    db.policy(idempotent=False, max_attempts=1)
    job = db.enqueue().job_id or 0
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.UNCERTAIN)
    assert Operator(db).reconcile(job, "not_applied") == ("done", "abandoned", "attempts_exhausted")


def test_not_applied_cancels_a_job_whose_cancel_was_requested(db: Database) -> None:
    db.policy(idempotent=False)
    job = db.enqueue().job_id or 0
    poller, ada = Poller(db), Operator(db)
    claimed = poller.one()
    ada.cancel(job)
    assert poller.fail(claimed, Outcome.UNCERTAIN).state is State.UNCERTAIN
    assert ada.reconcile(job, "not_applied") == ("done", "cancelled", "cancelled")


def test_a_late_success_on_an_abandoned_job_is_reconciled_by_a_person(db: Database) -> None:
    """FI-04: what was kept as a late word becomes the job's end by a named decision."""
    db.policy(max_attempts=1)
    job = db.enqueue(key="k").job_id or 0
    poller, ada = Poller(db), Operator(db)
    claimed = poller.one()
    db.move("1h")
    sweep(db)
    poller.succeed(claimed)
    assert ada.reconcile(job, "applied") == ("done", "succeeded", "completed")
    with refused("SL002", "cannot be reconciled as not_applied"):
        ada.reconcile(abandoned(db), "not_applied")
    assert db.enqueue(key="k").answer is EnqueueAnswer.CREATED


def test_acknowledged_means_seen_and_nothing_else(db: Database) -> None:
    db.policy()
    job = abandoned(db, key="k")
    ada = Operator(db)
    assert [ada.acknowledge(job)[0], ada.acknowledge(job)[0]] == ["done", "already_done"]
    assert db.enqueue(key="k").answer is EnqueueAnswer.HELD
    assert events(db, job) == ["stopped", "acknowledged"]


def test_releasing_a_key_is_an_action_of_its_own(db: Database) -> None:
    db.policy()
    job = abandoned(db, key="k")
    ada = Operator(db)
    assert [ada.release_key(job)[0], ada.release_key(job)[0]] == ["done", "already_done"]
    assert db.enqueue(key="k").answer is EnqueueAnswer.CREATED
    open_job = db.enqueue(key="k2").job_id or 0
    with refused("SL002", "needs its key"):
        ada.release_key(open_job)


def test_a_paused_kind_starts_nothing_and_its_deadlines_hold(db: Database) -> None:
    db.policy(deadline=3600)
    job = db.enqueue().job_id or 0
    poller, ada = Poller(db), Operator(db)
    assert ada.pause()[0] == "done"
    assert ada.pause()[0] == "already_done"
    assert poller.claim().status is ClaimStatus.PAUSED
    assert poller.store.tick("work", None).status is ClaimStatus.PAUSED
    db.move("2h")
    assert sweep(db) == {"deadline_passed": 1}
    assert db.job(job)["attempts"] == 0
    assert [ada.resume()[0], ada.resume()[0]] == ["done", "already_done"]
    assert events(db) == ["paused", "resumed"]


def test_a_pause_with_an_end_ends(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    Operator(db).pause(until=db.now() + timedelta(hours=1))
    assert poller.claim().status is ClaimStatus.PAUSED
    db.move("1h 1m")
    assert poller.claim().status is ClaimStatus.OK
    sweep(db)
    assert events(db) == ["paused", "resumed"]


@pytest.mark.parametrize("field", ["actor", "reason"])
def test_every_action_needs_an_actor_and_a_reason(db: Database, field: str) -> None:
    db.policy()
    job = db.enqueue().job_id or 0
    values = {"actor": "ada", "reason": "because"} | {field: " "}
    with db.connect("stopline_operator") as conn, refused("SL001", f"{field}: must be a text"):
        conn.execute("select stopline.cancel(%s, %s, %s)", [job, values["actor"], values["reason"]])
    assert db.job(job)["state"] == "pending"


def test_an_unknown_job_is_named(db: Database) -> None:
    db.policy()
    with refused("SL001", "there is no job 4711"):
        Operator(db).cancel(4711)


def test_a_request_for_a_replay_can_be_withdrawn(db: Database) -> None:
    db.policy(reconciles=True)
    job = abandoned(db)
    ada = Operator(db)
    assert ada.replay(job)[0] == "requested"
    assert ada.cancel(job) == ("done", "abandoned", "permanent_failure")
    assert db.job(job)["next_check_at"] is None
    assert events(db, job) == ["stopped", "replay_requested", "replay_withdrawn"]
    with refused("SL002", "has ended"):
        ada.cancel(job)
