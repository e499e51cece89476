"""A tick: what the kind's source and schedule enqueue, and that neither can start a loop or stop a poller."""

from datetime import UTC, datetime
from typing import Any

import pytest

from stopline.errors import InvalidInput
from stopline.states import ClaimStatus, Outcome
from stopline.store.worker import Tick, WorkerStore
from tests.support.application import SOURCE, make_items
from tests.support.blocking import in_background, wait_until_blocked
from tests.support.database import Database
from tests.support.deploys import deploy, policies
from tests.support.poller import Poller

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def deploy_source(db: Database, source: str = SOURCE, **settings: Any) -> None:
    """The kind `work` with this source; `settings` are columns of `stopline.kind`."""
    deploy(db, kinds=policies("work"), sources={"work": source})
    db.policy("work", **settings)


def tick(db: Database, scheduled_for: datetime | None = None, kind: str = "work") -> Tick:
    return WorkerStore(db.session()).tick(kind, scheduled_for)


def counts(answer: Tick) -> dict[str, int]:
    """The counts that are not zero."""
    return {what: number for what, number in answer.counts.items() if number}


def finish_all(db: Database) -> None:
    poller = Poller(db)
    for job in poller.claim(batch=100).jobs:
        poller.succeed(job)


def test_a_tick_enqueues_what_the_source_returns_and_counts_what_is_open_held_or_in_conflict(db: Database) -> None:
    make_items(db, 3)
    deploy_source(db)
    answer = tick(db)
    assert (counts(answer), answer.status, answer.note) == ({"created": 3}, ClaimStatus.OK, None)
    assert counts(tick(db)) == {"open": 3}

    poller = Poller(db)
    poller.fail(poller.one(), Outcome.PERMANENT)
    db.admin.execute("update app.item set body = '{\"changed\": true}' where id = 2")
    assert counts(tick(db)) == {"held": 1, "conflict": 1, "open": 1}
    assert len(db.rows("select id from stopline.job")) == 3


def test_one_bad_row_of_a_source_does_not_stop_the_others(db: Database) -> None:
    deploy_source(
        db,
        "select * from (values ('a', '1'::jsonb), (repeat('x', 513), '1'), (null, '1'), ('', '1'), ('b', null),"
        " ('c', to_jsonb(repeat('x', 300000))), ('d', '1e999'), ('e', '2')) as bad(key, payload)",
    )
    answer = tick(db)
    assert counts(answer) == {"created": 2, "invalid": 6}
    assert answer.note is not None
    assert [row["key"] for row in db.rows("select key from stopline.job order by key")] == ["a", "e"]


def test_a_row_without_a_key_is_invalid_because_nothing_would_stop_it_from_coming_back(db: Database) -> None:
    deploy_source(db, "select null as key, '1'::jsonb as payload")
    for _ in range(3):
        answer = tick(db)
        assert counts(answer) == {"invalid": 1}
        assert answer.note is not None
        assert answer.note.startswith("key: is null")
    assert db.rows("select id from stopline.job") == []


def test_a_key_that_the_source_returns_twice_makes_one_job(db: Database) -> None:
    deploy_source(db, "select 'k' as key, '1'::jsonb as payload from generate_series(1, 3)")
    assert counts(tick(db)) == {"created": 1, "open": 2}


@pytest.mark.parametrize(
    ("source", "error"),
    [
        ("select 'k' as key, to_jsonb(1 / (select count(*) from app.item)) as payload", "22012 division by zero"),
        ("select 'k' as key, '{}'::jsonb as payload from pg_sleep(60)", "57014 canceling statement"),
    ],
)
def test_a_source_that_fails_or_takes_too_long_is_a_note_and_the_poller_goes_on(
    db: Database, source: str, error: str
) -> None:
    make_items(db)
    deploy_source(db, source)
    db.enqueue()
    db.move(60)
    at = db.now()
    worker = db.connect()
    worker.execute("set statement_timeout = '100ms'")
    row = worker.execute("select stopline.tick('work', %s)", [NOON]).fetchone()
    assert row is not None
    answer = row[0]
    assert f"source.sql of kind work failed: {error}" in answer["note"]
    assert (answer["status"], answer["counts"]["created"]) == ("ok", 1)
    assert db.rows("select at from stopline.heartbeat where who = 'poller:work'")[0]["at"] > at
    assert len(Poller(db).claim(batch=5).jobs) == 2


def test_a_tick_takes_a_bounded_number_of_rows_and_held_keys_do_not_starve_the_rest(db: Database) -> None:
    make_items(db, 7)
    deploy_source(db, rows_per_tick=3)
    assert [counts(tick(db)).get("created", 0) for _ in range(4)] == [3, 3, 1, 0]
    assert len(db.rows("select id from stopline.job")) == 7


def test_rows_without_a_usable_key_do_not_starve_the_rest(db: Database) -> None:
    deploy_source(
        db,
        "select case when n > 4 then 'item ' || n when n > 2 then repeat('x', 513) end as key, '1'::jsonb as payload"
        " from generate_series(1, 7) n order by n",
        rows_per_tick=4,
    )
    assert counts(tick(db)) == {"invalid": 4, "created": 3}


def test_a_key_that_keeps_succeeding_while_the_source_keeps_returning_it_is_stopped(db: Database) -> None:
    """The loop of the incident, one level up: work that changes nothing that the source's query looks at."""
    make_items(db, 1)
    deploy_source(db, max_reopens=2)
    seen = []
    for _ in range(6):
        seen.append(counts(tick(db)))
        finish_all(db)
    assert seen == [{"created": 1}, {"created": 1}, {"created": 1}, {"reopen_limit": 1}, {"held": 1}, {"held": 1}]
    (stopped,) = db.rows("select * from stopline.job where state <> 'succeeded'")
    assert (stopped["state"], stopped["stop_reason"], stopped["attempts"]) == ("abandoned", "reopen_limit", 0)
    assert (stopped["key"], stopped["holds_key"]) == ("item 1", True)
    assert "after 3 jobs within" in stopped["last_error"]
    assert db.rows("select job_id, action, reason from stopline.event where job_id is not null") == [
        {"job_id": stopped["id"], "action": "stopped", "reason": "reopen_limit"}
    ]


def test_a_key_that_comes_back_after_its_window_counts_from_one_again(db: Database) -> None:
    make_items(db, 1)
    deploy_source(db, max_reopens=0, reopen_window=3600)
    assert counts(tick(db)) == {"created": 1}
    finish_all(db)
    db.move("61m")
    assert counts(tick(db)) == {"created": 1}
    finish_all(db)
    assert counts(tick(db)) == {"reopen_limit": 1}


def test_a_scheduled_time_that_is_delivered_twice_makes_one_job(db: Database) -> None:
    """CL-12: also when the first is done before the second comes."""
    db.policy()
    assert counts(tick(db, NOON)) == {"created": 1}
    assert counts(tick(db, NOON)) == {}
    finish_all(db)
    assert counts(tick(db, NOON)) == {}
    assert counts(tick(db, NOON.replace(hour=13))) == {"created": 1}
    rows = db.rows(
        "select j.key, d.payload from stopline.job j join stopline.job_data d on d.job_id = j.id order by j.id"
    )
    assert rows[0] == {
        "key": "scheduled:2026-01-01T12:00:00.000000Z",
        "payload": {"scheduled_for": "2026-01-01T12:00:00.000000Z"},
    }


def test_a_scheduled_time_that_is_delivered_twice_at_the_same_instant_makes_one_job(db: Database) -> None:
    """CL-12: two pollers run for one tick; the second waits for the first at the occurrence's row."""
    db.policy()
    first, second = db.connect(autocommit=False), db.connect()
    call = "select (stopline.tick('work', %s) -> 'counts' ->> 'created')::integer"
    assert first.execute(call, [NOON]).fetchone() == (1,)
    with in_background(lambda: second.execute(call, [NOON]).fetchone()) as other:
        wait_until_blocked(db.admin, second.info.backend_pid)
        first.commit()
        assert other.result() == (0,)
    assert len(db.rows("select id from stopline.job")) == 1


def test_a_tick_of_a_retired_kind_enqueues_nothing(db: Database) -> None:
    make_items(db, 1)
    deploy_source(db)
    db.retire("work")
    answer = tick(db, NOON)
    assert (counts(answer), answer.status) == ({}, ClaimStatus.PAUSED)


def test_a_tick_of_an_unknown_kind_says_so_by_name(db: Database) -> None:
    with pytest.raises(InvalidInput, match="'nothing' is not known to this database"):
        tick(db, kind="nothing")


def test_a_poller_stamps_its_heartbeat_at_most_every_ten_seconds(db: Database) -> None:
    """The stamp has a table of its own: claims lock the kind's row."""
    db.policy()
    db.freeze()
    db.move(60)
    query = "select at, xmin::text from stopline.heartbeat where who = 'poller:work'"
    tick(db)
    first = db.rows(query)
    assert first[0]["at"] == db.now()
    db.move(10)
    tick(db)
    assert db.rows(query) == first
    db.move(1)
    tick(db)
    assert db.rows(query)[0]["at"] == db.now()


def test_a_poller_does_not_wait_for_another_whose_source_takes_long(db: Database) -> None:
    """The stamp is written before the source runs, so its lock is held while the source runs."""
    db.policy()
    tick(db)
    for seconds in (0, 60):
        db.move(seconds)
        slow, other = db.connect(autocommit=False), db.connect()
        slow.execute("select stopline.tick('work')")
        other.execute("set lock_timeout = '200ms'")
        other.execute("select stopline.tick('work')")
        slow.rollback()
