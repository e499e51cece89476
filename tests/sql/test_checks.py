"""Questions put to receivers, as the engine counts them and acts on their answers."""

from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from stopline.states import ClaimStatus, EnqueueAnswer, Outcome
from tests.support.database import Database
from tests.support.operator import Operator, events
from tests.support.poller import Poller, sweep

POLICY: dict[str, Any] = {
    "idempotent": False,
    "reconciles": True,
    "settle": 120,
    "max_checks": 3,
    "timeout": 30,
    "margin": 15,
}


@dataclass(frozen=True)
class Check:
    job: int
    number: int
    round: int
    effect_key: str


def due(db: Database, limit: int = 5) -> list[Check]:
    """The checks that are handed out now."""
    with db.connect() as conn:
        rows = conn.execute(
            "select job_id, number, round, effect_key from stopline.due_checks('work', 'w1', %s, 900, %s)",
            [limit, db.identity],
        ).fetchall()
    return [Check(*row) for row in rows]


def answer(db: Database, check: Check, word: str, detail: str = "asked") -> tuple[str, str, str | None]:
    with db.connect() as conn:
        row = conn.execute(
            "select answer, state, stop_reason from stopline.record_check(%s, %s, %s, %s, %s)",
            [check.job, check.round, check.number, word, detail],
        ).fetchone()
    assert row is not None
    return row


def uncertain(db: Database, **policy: Any) -> int:
    db.policy(**(POLICY | policy))
    job = db.enqueue(key="k").job_id or 0
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.UNCERTAIN, "sent, and the answer was lost")
    return job


def test_the_first_question_waits_until_the_receiver_has_settled(db: Database) -> None:
    """ "Not applied" one second after a timeout is no evidence."""
    uncertain(db)
    assert due(db) == []
    db.move("2m")
    assert [check.number for check in due(db)] == [1]


def test_applied_ends_the_job_without_running_it_again(db: Database) -> None:
    job = uncertain(db)
    db.move("2m")
    (check,) = due(db)
    assert answer(db, check, "applied", "batch 17") == ("recorded", "succeeded", "completed")
    assert answer(db, check, "applied") == ("already_done", "succeeded", "completed")
    assert db.job(job)["attempts"] == 1
    assert Poller(db).claim().status is ClaimStatus.EMPTY
    assert events(db, job) == ["reconciled"]
    (row,) = db.rows("select * from stopline.reconcile_check")
    assert (row["answer"], row["detail"]) == ("applied", "batch 17")
    assert db.enqueue(key="k").answer is EnqueueAnswer.CREATED


def test_not_applied_opens_the_retry_with_the_same_effect_key(db: Database) -> None:
    job = uncertain(db, retry_base=1, retry_cap=1)
    db.move("2m")
    (check,) = due(db)
    assert answer(db, check, "not_applied")[1] == "pending"
    assert db.job(job)["due_rule"] == "check"
    db.move("2s")
    claimed = Poller(db).one()
    assert (claimed.attempt, claimed.effect_key) == (2, check.effect_key)


def test_not_applied_past_a_limit_stops_the_job_by_that_limit(db: Database) -> None:
    uncertain(db, deadline=600, retry_base=3600, retry_cap=3600)
    db.move("2m")
    assert answer(db, due(db)[0], "not_applied")[1:] == ("abandoned", "deadline_passed")


def test_unknown_is_asked_again_later_and_later_and_at_the_bound_by_nobody(db: Database) -> None:
    job = uncertain(db)
    db.freeze()
    pauses = []
    db.move("2m")
    for _ in range(3):
        (check,) = due(db)
        answer(db, check, "unknown", "the connector does not say")
        row = db.job(job)
        if row["next_check_at"] is not None:
            pauses.append((row["next_check_at"] - db.now()).total_seconds())
            db.move(seconds=pauses[-1])
    assert 60 <= pauses[0] <= 120 <= pauses[1] <= 240
    db.move("10d")
    assert due(db) == []
    row = db.job(job)
    assert (row["state"], row["checks"], row["next_check_at"]) == ("uncertain", 3, None)
    assert row["review_by"] is not None
    assert events(db, job) == ["checks_exhausted"]


def test_a_check_is_counted_before_it_is_asked_so_that_a_dying_one_is_bounded_too(db: Database) -> None:
    job = uncertain(db)
    db.move("2m")
    for number in (1, 2, 3):
        assert [check.number for check in due(db)] == [number]
        assert due(db) == []
        db.move("46s")
    assert due(db) == []
    assert sweep(db) == {"checks_closed": 1}
    assert sweep(db) == {}
    rows = db.rows("select answer, detail from stopline.reconcile_check order by number")
    assert [row["answer"] for row in rows] == ["unknown"] * 3
    assert "ended without an answer" in rows[0]["detail"]
    assert events(db, job) == ["checks_exhausted"]


def test_two_pollers_do_not_ask_one_question_twice(db: Database) -> None:
    uncertain(db)
    db.move("2m")
    call = "select job_id from stopline.due_checks('work', %s, 5, 900, %s)"
    first = db.connect(autocommit=False)
    assert len(first.execute(call, ["w1", db.identity]).fetchall()) == 1
    assert db.connect().execute(call, ["w2", db.identity]).fetchall() == []
    first.commit()
    assert due(db) == []


def test_an_answer_that_comes_after_a_persons_decision_changes_nothing(db: Database) -> None:
    job = uncertain(db)
    db.move("2m")
    (check,) = due(db)
    Operator(db).reconcile(job, "not_applied")
    assert answer(db, check, "applied")[0] == "stale"
    assert db.job(job)["state"] == "pending"


def test_applied_is_the_truth_also_from_an_older_question(db: Database) -> None:
    uncertain(db)
    db.move("2m")
    (first,) = due(db)
    db.move("46s")
    due(db)
    assert answer(db, first, "not_applied")[0] == "stale"
    uncertain_job = first.job
    assert db.job(uncertain_job)["state"] == "uncertain"


def test_kinds_without_the_hook_and_foreign_pollers_are_handed_no_question(db: Database) -> None:
    uncertain(db, reconciles=False)
    db.move("2m")
    assert due(db) == []
    db.policy(**POLICY)
    with db.connect() as conn:
        assert conn.execute("select from stopline.due_checks('work', 'w', 5, 900, 'elsewhere')").fetchall() == []
    assert len(due(db)) == 1


@pytest.mark.parametrize(
    ("word", "state", "told"),
    [
        ("applied", "succeeded", ["replay_requested", "reconciled"]),
        ("not_applied", "pending", ["replay_requested", "replayed"]),
    ],
)
def test_a_replay_of_a_kind_that_can_ask_is_asked_first(db: Database, word: str, state: str, told: list[str]) -> None:
    db.policy(**(POLICY | {"max_attempts": 1, "idempotent": True}))
    job = db.enqueue().job_id or 0
    poller, ada = Poller(db), Operator(db)
    poller.fail(poller.one())
    assert [ada.replay(job)[0], ada.replay(job)[0]] == ["requested", "already_done"]
    assert db.job(job)["state"] == "abandoned"
    (check,) = due(db)
    assert answer(db, check, word)[1] == state
    assert events(db, job)[1:] == told
    row = db.job(job)
    assert (row["round"], row["replay_by"]) == (2 if state == "pending" else 1, None)


def test_a_replay_whose_question_nobody_can_answer_is_closed_with_an_event(db: Database) -> None:
    db.policy(**(POLICY | {"max_attempts": 1, "idempotent": True}))
    job = db.enqueue().job_id or 0
    poller, ada = Poller(db), Operator(db)
    poller.fail(poller.one())
    ada.replay(job)
    for _ in range(3):
        (check,) = due(db)
        answer(db, check, "unknown")
        db.move("1h")
    assert db.job(job)["state"] == "abandoned"
    assert events(db, job) == ["stopped", "replay_requested", "replay_unanswered"]
    assert ada.replay(job)[0] == "requested"


def test_a_replay_that_became_impossible_meanwhile_is_refused_with_an_event(db: Database) -> None:
    """The key was taken while the receiver was asked."""
    db.policy(**(POLICY | {"max_attempts": 1, "idempotent": True}))
    job = db.enqueue(key="k").job_id or 0
    poller, ada = Poller(db), Operator(db)
    poller.fail(poller.one())
    ada.replay(job)
    (check,) = due(db)
    ada.release_key(job)
    newer = db.enqueue(key="k").job_id
    assert answer(db, check, "not_applied")[1] == "abandoned"
    (event,) = db.rows("select reason from stopline.event where action = 'replay_refused'")
    assert f"is held by job {newer}" in event["reason"]


def test_a_wrong_word_is_refused_and_the_question_stays_open(db: Database) -> None:
    uncertain(db)
    db.move("2m")
    (check,) = due(db)
    with pytest.raises(psycopg.Error, match="answer: maybe; a check answers applied, not_applied or unknown"):
        answer(db, check, "maybe")
    assert answer(db, check, "applied")[0] == "recorded"


def test_questions_without_a_settling_time_are_not_all_asked_at_once(db: Database) -> None:
    job = uncertain(db, settle=0, retry_base=30, retry_cap=900)
    (check,) = due(db)
    answer(db, check, "unknown")
    assert due(db) == []
    assert (db.job(job)["next_check_at"] - db.now()).total_seconds() > 10
