"""What is deleted in time, and what never is."""

from datetime import timedelta
from typing import Any

from stopline.store.upkeep import UpkeepStore
from tests.support.database import Database
from tests.support.poller import Poller
from tests.support.rows import insert_job

D = timedelta(days=1)


def purge(db: Database, limit: int = 100) -> dict[str, int]:
    """One purge; only what was removed."""
    removed = UpkeepStore(db.session("stopline_sweeper")).purge(limit)
    return {what: number for what, number in removed.items() if number}


def left(db: Database) -> list[int]:
    return [row["id"] for row in db.rows("select id from stopline.job order by id")]


def test_each_kind_keeps_its_jobs_as_long_as_its_policy_says(db: Database) -> None:
    db.policy("brief", retain_succeeded=86400, retain_stopped=3 * 86400)
    db.policy("long", retain_succeeded=30 * 86400, retain_stopped=2 * 86400)
    db.freeze()
    kept = [
        insert_job(db, "succeeded", kind="brief", finished_at=-1 * D),
        insert_job(db, "cancelled", kind="brief", finished_at=-2 * D),
        insert_job(db, "succeeded", kind="long", finished_at=-29 * D),
        insert_job(db, "cancelled", kind="long", finished_at=-1 * D),
    ]
    insert_job(db, "succeeded", kind="brief", finished_at=-2 * D)
    insert_job(db, "cancelled", kind="brief", finished_at=-4 * D)
    insert_job(db, "succeeded", kind="long", finished_at=-31 * D)
    insert_job(db, "cancelled", kind="long", finished_at=-3 * D)
    assert purge(db) == {"jobs": 4}
    assert left(db) == kept


def test_what_a_person_must_still_see_and_what_holds_a_key_is_never_deleted(db: Database) -> None:
    """Acknowledged only means seen: an abandoned job stays whatever its age."""
    db.policy(retain_succeeded=3600, retain_stopped=3600)
    old: dict[str, Any] = {"created_at": -900 * D}
    kept = [
        insert_job(db, "abandoned", finished_at=-800 * D, **old),
        insert_job(db, "abandoned", finished_at=-800 * D, acknowledged_at=-700 * D, **old),
        insert_job(db, "uncertain", **old),
        insert_job(db, "claimed", **old),
        insert_job(db, "pending", **old),
        insert_job(db, "cancelled", finished_at=-800 * D, key="k", holds_key=True, **old),
    ]
    insert_job(db, "cancelled", finished_at=-800 * D, key="free", **old)
    assert purge(db) == {"jobs": 1}
    assert left(db) == kept


def test_a_deleted_job_takes_its_data_attempts_and_checks_along_and_leaves_its_events(db: Database) -> None:
    db.policy(retain_succeeded=3600)
    db.enqueue(payload={"name": "Ada"})
    poller = Poller(db)
    poller.fail(poller.one())
    db.move("1h")
    job = poller.one()
    poller.succeed(job, result='"done"')
    db.admin.execute("insert into stopline.reconcile_check values (%s, 1, 1, now(), 'w1', 'unknown')", [job.id])
    db.admin.execute(
        "insert into stopline.event (at, kind, job_id, action, actor) values (now(), 'work', %s, 'noted', 'me')",
        [job.id],
    )
    assert purge(db) == {}
    db.move("2h")
    assert purge(db) == {"jobs": 1, "attempts": 2}
    for table in ("job", "job_data", "attempt", "reconcile_check"):
        assert db.rows(f"select * from stopline.{table}") == []
    assert db.rows("select job_id from stopline.event where action = 'noted'") == [{"job_id": job.id}]


def test_one_purge_deletes_at_most_its_limit_and_the_next_goes_on(db: Database) -> None:
    for kind in ("one", "two"):
        db.policy(kind, retain_succeeded=3600)
        for _ in range(4):
            insert_job(db, "succeeded", kind=kind, finished_at=-1 * D)
    assert [purge(db, 3) for _ in range(4)] == [{"jobs": 3}, {"jobs": 3}, {"jobs": 2}, {}]


def test_a_row_that_somebody_holds_is_passed_over(db: Database) -> None:
    db.policy(retain_succeeded=3600)
    held = insert_job(db, "succeeded", finished_at=-2 * D)
    insert_job(db, "succeeded", finished_at=-1 * D)
    holder = db.connect("postgres", autocommit=False)
    holder.execute("select from stopline.job where id = %s for update", [held])
    assert purge(db) == {"jobs": 1}
    assert left(db) == [held]


def test_the_memory_of_a_sources_keys_ends_with_its_window_and_that_of_a_schedule_after_a_week(db: Database) -> None:
    db.policy(reopen_window=3600)
    db.admin.execute(
        "insert into stopline.source_key values"
        " ('work', 'old', now() - interval '2 hours', 1), ('work', 'new', now(), 1);"
        "insert into stopline.occurrence values ('work', now() - interval '8 days', now()), ('work', now(), now())"
    )
    assert purge(db) == {"source_keys": 1, "occurrences": 1}
    assert db.rows("select key from stopline.source_key") == [{"key": "new"}]
