"""What becomes of enqueued work."""

from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from stopline.errors import InvalidInput
from stopline.limits import PAYLOAD_BYTES
from stopline.states import EnqueueAnswer, Outcome
from stopline.store.producer import Item, enqueue, enqueue_many
from tests.support.blocking import in_background, wait_until_blocked
from tests.support.database import Database
from tests.support.poller import Poller

HALF_AN_EMOJI = "\ud83d"
NAIVE = datetime(2030, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@pytest.mark.parametrize(
    ("payload", "place"),
    [
        ({"a": "x\0y"}, "payload.a"),
        ({"a": [1, {"b": HALF_AN_EMOJI}]}, "payload.a[1].b"),
        ({"x\0": 1}, "payload"),
        ({HALF_AN_EMOJI: 1}, "payload"),
        ({"a": float("nan")}, "payload.a"),
        ({"a": float("-inf")}, "payload.a"),
        ({"a": 10**5000}, "payload.a"),
        ({1: "number for a key"}, "payload"),
        ({"at": datetime.now(UTC)}, "payload.at"),
        ({"a": "x" * PAYLOAD_BYTES}, "payload"),
    ],
)
def test_a_bad_payload_is_refused_by_place_and_rule_and_the_transaction_goes_on(
    db: Database, payload: object, place: str
) -> None:
    """EN-01, EN-02, EN-05: nothing is inserted, and the caller's other work is kept."""
    db.policy()
    conn = db.connect("stopline_producer", autocommit=False)
    with pytest.raises(InvalidInput) as refused:
        enqueue(conn, "work", payload)
    assert refused.value.field.startswith(place)
    assert enqueue(conn, "work", {"fine": True}).answer is EnqueueAnswer.CREATED
    conn.commit()
    assert [row["payload"] for row in db.rows("select payload from stopline.job_data")] == [{"fine": True}]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"priority": 4}, "priority"),
        ({"max_attempts": 6}, "max_attempts"),
        ({"max_attempts": 0}, "max_attempts"),
        ({"key": ""}, "key"),
        ({"key": "k" * 513}, "key"),
        ({"key": "a\0b"}, "key"),
        ({"due_at": NAIVE}, "due_at"),
        ({"deadline_at": NAIVE}, "deadline_at"),
        ({"deadline_at": datetime(2020, 1, 1, tzinfo=UTC)}, "deadline_at"),
        ({"due_at": datetime.max.replace(tzinfo=UTC)}, "due_at"),
    ],
)
def test_a_bad_option_is_refused_by_name(db: Database, options: dict[str, object], field: str) -> None:
    db.policy(max_attempts=5)
    conn = db.connect("stopline_producer")
    with pytest.raises(InvalidInput) as refused:
        enqueue(conn, "work", {}, **options)  # type: ignore[arg-type]
    assert refused.value.field == field
    assert db.rows("select id from stopline.job") == []


def test_a_deadline_that_the_job_could_never_meet_is_refused(db: Database) -> None:
    db.policy()
    now = datetime.now(UTC)
    with pytest.raises(InvalidInput, match="is not after due_at"):
        db.enqueue(due_at=now + timedelta(hours=2), deadline_at=now + timedelta(hours=1))


def test_the_policys_deadline_counts_from_the_due_time(db: Database) -> None:
    """EN-09 in part: a delayed job is not born expired."""
    db.policy(deadline=3600)
    due = datetime.now(UTC) + timedelta(hours=2)
    row = db.job(db.enqueue(due_at=due).job_id or 0)
    assert row["deadline_at"] == due + timedelta(hours=1)


def test_one_byte_over_the_limit_is_refused_and_the_limit_itself_is_not(db: Database) -> None:
    """EN-05: the limit is in the message, and is the same in Python and in the database."""
    db.policy(max_payload=PAYLOAD_BYTES)
    conn = db.connect("stopline_producer")
    largest = "x" * (PAYLOAD_BYTES - 2)
    assert enqueue(conn, "work", largest).answer is EnqueueAnswer.CREATED
    with pytest.raises(InvalidInput, match="262,144"):
        enqueue(conn, "work", largest + "x")
    with pytest.raises(psycopg.Error, match="kind work allows 262144") as refused:
        conn.execute("select stopline.enqueue('work', to_jsonb(repeat('x', 262143)))")
    assert refused.value.sqlstate == "SL001"


def test_a_kinds_own_payload_limit_is_enforced(db: Database) -> None:
    db.policy(max_payload=100)
    with pytest.raises(InvalidInput, match="kind work allows 100"):
        db.enqueue(payload={"text": "x" * 100})


def test_a_number_that_no_reader_could_hold_is_refused_by_the_database_too(db: Database) -> None:
    """CL-01: stopped at the door, whoever enqueues."""
    db.policy()
    conn = db.connect("stopline_producer")
    with pytest.raises(psycopg.Error, match="a number beyond 1e308"):
        conn.execute("select stopline.enqueue('work', jsonb_build_object('n', repeat('9', 400)::numeric))")
    conn.execute("select stopline.enqueue('work', jsonb_build_object('n', repeat('9', 400)))")


def test_bad_items_of_a_batch_are_answered_and_the_others_are_unaffected(db: Database) -> None:
    """EN-01: each item has its own answer, in the order given."""
    db.policy(max_attempts=5)
    conn = db.connect("stopline_producer")
    answers = enqueue_many(
        conn,
        "work",
        [
            Item({"n": 1}),
            Item({"n": float("nan")}),
            Item({"n": 3}, max_attempts=99),
            Item({"n": 4}, key="k"),
            Item({"n": 5}, key="k"),
            Item({"n": 4}, key="k"),
        ],
    )
    assert [answer.answer for answer in answers] == ["created", "invalid", "invalid", "created", "conflict", "open"]
    assert answers[1].error is not None
    assert "payload.n" in answers[1].error
    assert answers[2].error is not None
    assert "max_attempts: 99" in answers[2].error
    assert [row["payload"] for row in db.rows("select payload from stopline.job_data order by 1")] == [
        {"n": 1},
        {"n": 4},
    ]


def test_an_empty_batch_is_nothing(db: Database) -> None:
    db.policy()
    assert enqueue_many(db.connect("stopline_producer"), "work", []) == []


def test_an_unknown_kind_is_named_with_the_known_ones(db: Database) -> None:
    db.policy("work")
    with pytest.raises(InvalidInput, match=r"kind: 'wrok' is not known. Known kinds: work"):
        db.enqueue("wrok")


def test_enqueue_lives_and_dies_with_the_callers_transaction(db: Database) -> None:
    db.policy()
    conn = db.connect("stopline_producer", autocommit=False)
    enqueue(conn, "work", {})
    conn.rollback()
    assert db.rows("select id from stopline.job") == []


def test_succeeded_jobs_free_their_key_and_stopped_ones_hold_it(db: Database) -> None:
    """EN-07: the rule for each terminal state."""
    db.policy(max_attempts=1)
    poller = Poller(db)
    db.enqueue(key="done")
    poller.succeed(poller.one())
    assert db.enqueue(key="done").answer is EnqueueAnswer.CREATED
    poller.succeed(poller.one())

    stopped = db.enqueue(key="poison", payload={"v": 1})
    poller.fail(poller.one())
    answer = db.enqueue(key="poison", payload={"v": 2})
    assert (answer.answer, answer.job_id, answer.state, answer.stop_reason) == (
        "held",
        stopped.job_id,
        "abandoned",
        "attempts_exhausted",
    )


def test_acknowledging_a_stopped_job_does_not_free_its_key(db: Database) -> None:
    """Acknowledged means seen: a level-triggered source would otherwise bring the poison back on its next tick."""
    db.policy(max_attempts=1)
    db.enqueue(key="poison")
    poller = Poller(db)
    poller.fail(poller.one())
    db.admin.execute("update stopline.job set acknowledged_at = stopline.clock()")
    assert db.enqueue(key="poison").answer is EnqueueAnswer.HELD


def test_a_kind_may_let_go_of_its_keys_when_it_stops(db: Database) -> None:
    """EN-07: hold_key = false is the policy's stated exception."""
    db.policy(max_attempts=1, hold_key=False)
    db.enqueue(key="k")
    poller = Poller(db)
    poller.fail(poller.one())
    assert db.enqueue(key="k").answer is EnqueueAnswer.CREATED


def test_an_uncertain_job_is_open_and_keeps_its_key(db: Database) -> None:
    db.policy(idempotent=False)
    db.enqueue(key="k")
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.UNCERTAIN)
    assert db.enqueue(key="k").answer is EnqueueAnswer.OPEN


def test_two_producers_of_one_key_make_one_job(db: Database) -> None:
    db.policy()
    first, second = db.connect("stopline_producer", autocommit=False), db.connect("stopline_producer")
    made = enqueue(first, "work", {}, key="k")
    with in_background(lambda: enqueue(second, "work", {}, key="k")) as other:
        wait_until_blocked(db.admin, second.info.backend_pid)
        first.commit()
        answer = other.result()
    assert (made.answer, answer.answer, answer.job_id) == ("created", "open", made.job_id)


def test_a_key_that_its_holder_gives_up_meanwhile_is_created_after_all(db: Database) -> None:
    db.policy()
    first, second = db.connect("stopline_producer", autocommit=False), db.connect("stopline_producer")
    enqueue(first, "work", {}, key="k")
    with in_background(lambda: enqueue(second, "work", {}, key="k")) as other:
        wait_until_blocked(db.admin, second.info.backend_pid)
        first.rollback()
        assert other.result().answer is EnqueueAnswer.CREATED


def test_two_batches_with_the_same_keys_in_another_order_do_not_deadlock(db: Database) -> None:
    db.policy()
    keys = [f"k{n}" for n in range(20)]
    first, second = db.connect("stopline_producer", autocommit=False), db.connect("stopline_producer", autocommit=False)
    enqueue_many(first, "work", [Item({}, key=key) for key in keys])
    with in_background(lambda: enqueue_many(second, "work", [Item({}, key=key) for key in reversed(keys)])) as other:
        wait_until_blocked(db.admin, second.info.backend_pid)
        first.commit()
        assert {answer.answer for answer in other.result()} == {EnqueueAnswer.OPEN}
    second.commit()
