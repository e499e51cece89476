"""What the database refuses, whoever writes: here a superuser writes plain SQL."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from psycopg import errors as pg

from stopline.limits import KEY_BYTES, MAX_ATTEMPTS
from tests.support.database import Database
from tests.support.poller import Poller
from tests.support.rows import insert_job


@contextmanager
def refused(constraint: str, *words: str) -> Iterator[None]:
    """The block must break this constraint, and the message or its hint must hold these words."""
    with pytest.raises(pg.IntegrityError) as caught:
        yield
    diag = caught.value.diag
    assert diag.constraint_name == constraint
    text = f"{diag.message_primary} {diag.message_hint}"
    assert [word for word in words if word not in text] == []


def test_attempts_beyond_the_cap_are_refused(db: Database) -> None:
    job = insert_job(db, "claimed", attempts=3, max_attempts=3)
    with refused("attempts_stay_within_the_cap"):
        db.admin.execute("update stopline.job set attempts = attempts + 1 where id = %s", [job])


def test_a_cap_outside_1_to_1000_is_refused(db: Database) -> None:
    """CL-04: counters are integers with room to spare; the cap itself is bounded."""
    assert db.job(insert_job(db, max_attempts=MAX_ATTEMPTS))["max_attempts"] == MAX_ATTEMPTS
    for cap in (0, MAX_ATTEMPTS + 1, 40_000):
        with refused("cap_is_1_to_1000"):
            insert_job(db, "succeeded", max_attempts=cap)
    with pytest.raises(pg.CheckViolation):
        db.policy(max_attempts=MAX_ATTEMPTS + 1)


@pytest.mark.parametrize("state", ["abandoned", "cancelled"])
def test_setting_a_stopped_job_to_pending_by_hand_is_refused_and_the_message_names_replay(
    db: Database, state: str
) -> None:
    """CL-03: a row cannot rest in pending at its cap, where no claim takes it and nothing reports it."""
    job = insert_job(db, state, attempts=3, max_attempts=3)
    with refused("pending_row_is_below_its_cap", f"job {job} (work)", "3 of 3 attempts", "stopline.replay"):
        db.admin.execute(
            "update stopline.job set state = 'pending', finished_at = null, stop_reason = null where id = %s", [job]
        )
    with refused("pending_row_is_below_its_cap", "stopline.replay"):
        insert_job(db, attempts=5)


def test_lowering_a_waiting_jobs_own_cap_to_what_it_has_used_is_refused(db: Database) -> None:
    """CL-03: the second way into pending at the cap."""
    job = insert_job(db, attempts=2)
    with refused("pending_row_is_below_its_cap", "stopline.replay"):
        db.admin.execute("update stopline.job set max_attempts = 2 where id = %s", [job])


def test_a_row_at_its_cap_that_was_smuggled_in_does_not_keep_the_others_from_being_claimed(db: Database) -> None:
    """CL-03: a claim never raises because of stored data."""
    db.policy()
    db.admin.execute("alter table stopline.job drop constraint pending_row_is_below_its_cap")
    db.admin.execute("set session_replication_role = replica")
    stuck = insert_job(db, attempts=5, due_at=timedelta(hours=-1))
    db.admin.execute("reset session_replication_role")
    good = insert_job(db)
    assert [job.id for job in Poller(db).claim(batch=5).jobs] == [good]
    with db.connect("stopline_sweeper") as sweeper:
        sweeper.execute("select stopline.sweep()")
    assert (db.job(stuck)["state"], db.job(stuck)["stop_reason"]) == ("abandoned", "attempts_exhausted")


def test_an_abandoned_row_without_a_stop_reason_is_refused(db: Database) -> None:
    with pytest.raises(pg.CheckViolation):
        insert_job(db, "abandoned", stop_reason=None)


@pytest.mark.parametrize("error", [None, ""])
def test_an_abandoned_row_without_an_error_text_is_refused(db: Database, error: str | None) -> None:
    with refused("abandoned_row_says_why"):
        insert_job(db, "abandoned", last_error=error)


@pytest.mark.parametrize("column", ["lease_until", "claim_token", "claimed_by", "claimed_at"])
def test_a_claimed_row_without_its_lease_is_refused(db: Database, column: str) -> None:
    with refused("claimed_row_has_a_lease"):
        insert_job(db, "claimed", **{column: None})


@pytest.mark.parametrize("state", ["succeeded", "abandoned", "cancelled"])
def test_an_ended_row_without_a_finish_time_is_refused(db: Database, state: str) -> None:
    with refused("terminal_row_has_a_finish_time"):
        insert_job(db, state, finished_at=None)


@pytest.mark.parametrize("state", ["pending", "claimed", "uncertain"])
def test_an_open_row_with_a_finish_time_or_a_stop_reason_is_refused(db: Database, state: str) -> None:
    with refused("terminal_row_has_a_finish_time"):
        insert_job(db, state, finished_at=timedelta())
    with refused("terminal_row_has_a_stop_reason"):
        insert_job(db, state, stop_reason="completed")


def test_a_failed_attempt_without_an_error_text_is_refused(db: Database) -> None:
    with refused("attempt_says_why"):
        db.admin.execute(
            "insert into stopline.attempt"
            " (job_id, fence, kind, round, attempt, started_at, finished_at, worker, outcome)"
            " values (1, 1, 'work', 1, 1, now(), now(), 'w1', 'crashed')"
        )


def test_two_rows_that_hold_one_key_of_a_kind_are_refused(db: Database) -> None:
    insert_job(db, "abandoned", key="invoice 7", holds_key=True)
    with refused("job_key"):
        insert_job(db, key="invoice 7", holds_key=True)
    insert_job(db, kind="other", key="invoice 7", holds_key=True)
    insert_job(db, "succeeded", key="invoice 7")


def test_an_open_row_that_does_not_hold_its_key_is_refused(db: Database) -> None:
    """RE-05: every state that is not ended is inside the key's index."""
    for state in ("pending", "claimed", "uncertain"):
        with refused("open_row_holds_its_key"):
            insert_job(db, state, key="k", holds_key=False)


def test_a_key_has_1_to_512_bytes(db: Database) -> None:
    insert_job(db, key="é" * (KEY_BYTES // 2), holds_key=True)
    for key in ("", "é" * (KEY_BYTES // 2) + "x"):
        with refused("key_is_1_to_512_bytes"):
            insert_job(db, key=key, holds_key=True)
