"""Unknown outcomes are resolved by asking the receiver, by the real poller, and never by sending again."""


import pytest

from stopline.states import Outcome, ReceiverAnswer, RecordAnswer
from stopline.store.worker import Check, UnreadableCheck, WorkerStore
from tests.support.database import Database
from tests.support.operator import Operator
from tests.support.poller import PLENTY, Poller

KIND = {"idempotent": False, "reconciles": True, "settle": 120, "max_checks": 3, "timeout": 30, "margin": 15}
APPLIED, NOT_APPLIED, UNKNOWN = ReceiverAnswer


def checks_of(db: Database, job: int) -> list[tuple[int, int, str, str]]:
    rows = db.rows("select * from stopline.reconcile_check where job_id = %s order by round, number", job)
    return [(row["round"], row["number"], row["answer"], row["detail"]) for row in rows]


def due(db: Database, store: WorkerStore, limit: int = 5) -> list[Check | UnreadableCheck]:
    return store.due_checks("work", "w1", limit, PLENTY, db.identity)


def one(db: Database, store: WorkerStore) -> Check:
    (check,) = due(db, store)
    assert isinstance(check, Check)
    return check


def uncertain(db: Database, poller: Poller, **policy: object) -> int:
    """A job whose only attempt was sent and lost, settled since."""
    db.policy(**(KIND | policy))
    job = db.enqueue(payload={"batch": 7}).job_id or 0
    poller.fail(poller.one(), Outcome.UNCERTAIN, "sent, and the answer was lost")
    db.move("2m")
    return job


def test_a_question_carries_the_job_as_its_attempt_left_it(db: Database) -> None:
    poller = Poller(db)
    job = uncertain(db, poller, max_attempts=4)
    check = one(db, poller.store)
    assert (check.round, check.number) == (1, 1)
    assert (check.job.id, check.job.attempt, check.job.attempts_left, check.job.fence) == (job, 1, 3, 1)
    assert (check.job.payload, check.job.checkpoint) == ({"batch": 7}, None)
    assert check.job.effect_key == f"{check.job.effect_key.rpartition('-')[0]}-{job}"
    assert check.job.lease_seconds == 45


def test_a_row_that_cannot_be_decoded_is_named_and_costs_its_neighbour_nothing(db: Database) -> None:
    """CL-01 for questions: the answer is unknown, until a person looks."""
    poller = Poller(db)
    bad = uncertain(db, poller)
    db.admin.execute(
        "update stopline.job_data set payload = ('9' || repeat('0', 5000))::jsonb where job_id = %s", [bad]
    )
    good = uncertain(db, poller)
    first, second = due(db, poller.store)
    assert isinstance(first, UnreadableCheck)
    assert (first.job_id, first.column) == (bad, "payload")
    assert isinstance(second, Check)
    assert second.job.id == good


def test_an_answer_that_is_given_again_is_told_what_became_of_the_first(db: Database) -> None:
    """A reply was lost, or a poller thawed after a minute and says it once more: nothing happens twice."""
    poller = Poller(db)
    job = uncertain(db, poller)
    check = one(db, poller.store)
    first = poller.store.record_check(job, 1, check.number, NOT_APPLIED, "no such batch")
    again = poller.store.record_check(job, 1, check.number, NOT_APPLIED, "no such batch")
    other = poller.store.record_check(job, 1, check.number, APPLIED, "changed its mind")
    assert [first.answer, again.answer, other.answer] == [
        RecordAnswer.RECORDED,
        RecordAnswer.ALREADY_DONE,
        RecordAnswer.ALREADY_DONE,
    ]
    assert [record.state for record in (first, again, other)] == ["pending"] * 3
    assert checks_of(db, job) == [(1, 1, "not_applied", "no such batch")]


def test_a_second_unknown_outcome_of_a_round_is_a_question_of_its_own(db: Database) -> None:
    """The answer to the first stays, and all its checks are there again."""
    poller = Poller(db)
    job = uncertain(db, poller, retry_base=1, retry_cap=1)
    poller.store.record_check(job, 1, one(db, poller.store).number, NOT_APPLIED, "no such batch")
    db.move("2s")
    poller.fail(poller.one(), Outcome.UNCERTAIN, "lost again")
    for number in (2, 3, 4):
        db.move("1h")
        check = one(db, poller.store)
        assert check.number == number
        poller.store.record_check(job, 1, number, UNKNOWN, "says nothing")
    assert [answer for *_, answer, _ in checks_of(db, job)] == ["not_applied", "unknown", "unknown", "unknown"]
    assert db.job(job)["next_check_at"] is None


@pytest.mark.parametrize("asked_again", [False, True])
def test_a_frozen_pollers_not_applied_about_an_earlier_send_opens_no_retry(db: Database, asked_again: bool) -> None:
    """It was asked before the second attempt sent: that nothing was there then says nothing about now."""
    poller = Poller(db)
    job = uncertain(db, poller, retry_base=1, retry_cap=1)
    frozen = one(db, poller.store)
    if asked_again:
        db.move("46s")
        poller.store.record_check(job, 1, one(db, poller.store).number, NOT_APPLIED, "no such batch")
    else:
        Operator(db).reconcile(job, "not_applied")
    db.move("2s")
    poller.fail(poller.one(), Outcome.UNCERTAIN, "lost again")
    if asked_again:
        db.move("2m")
        one(db, poller.store)
    late = poller.store.record_check(job, 1, frozen.number, NOT_APPLIED, "no such batch")
    assert (late.answer, late.state) == (RecordAnswer.STALE, "uncertain")
    truth = poller.store.record_check(job, 1, frozen.number, APPLIED, "")
    assert truth.answer == RecordAnswer.ALREADY_DONE


def test_a_replay_asks_under_new_numbers_so_that_no_earlier_answer_is_overwritten(db: Database) -> None:
    poller, ada = Poller(db), Operator(db)
    job = uncertain(db, poller)
    poller.store.record_check(job, 1, one(db, poller.store).number, UNKNOWN, "busy")
    ada.cancel(job, "looked at the receiver")
    ada.replay(job)
    check = one(db, poller.store)
    poller.store.record_check(job, 1, check.number, NOT_APPLIED, "no such batch")
    assert checks_of(db, job) == [(1, 1, "unknown", "busy"), (1, 2, "not_applied", "no such batch")]
    assert (db.job(job)["state"], db.job(job)["round"]) == ("pending", 2)
