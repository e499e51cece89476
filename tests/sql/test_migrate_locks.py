"""Migrations on a database that is in use: they wait briefly, let the pollers pass, and never run twice."""

from pathlib import Path

import pytest

from stopline.migrate import steps
from stopline.migrate.runner import MigrationError
from tests.support.blocking import in_background, wait_until_blocked
from tests.support.database import Database
from tests.support.deploys import OUTSIDE, SqlCopy, deploy, policies
from tests.support.poller import Poller
from tests.support.rows import insert_job

NOTE = "alter table job add column note text;"


@pytest.fixture
def copy(tmp_path: Path) -> SqlCopy:
    return SqlCopy(tmp_path)


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runner's real wait for a lock, shortened."""
    monkeypatch.setattr(steps, "_LOCK_TIMEOUT_MS", 100)


@pytest.mark.usefixtures("impatient")
def test_while_a_long_reader_holds_the_table_a_migration_tries_again_and_claims_go_on(
    db: Database, copy: SqlCopy
) -> None:
    """MI-05: the claim waits at most for one try of the migration; no attempt is lost, and the migration gets there."""
    db.policy()
    first, second = db.enqueue(), db.enqueue()
    poller = Poller(db)
    running = poller.one()
    reader = db.connect("postgres", autocommit=False)
    reader.execute("select count(*) from stopline.job")

    copy.migration("0002_note", NOTE)
    owner = db.connect("stopline_owner")
    with in_background(lambda: deploy(db, copy.path, policies("work"), conn=owner)) as run:
        assert wait_until_blocked(db.admin, owner.info.backend_pid) == [reader.info.backend_pid]
        assert poller.one().id == second.job_id
        assert poller.succeed(running).state == "succeeded"
        assert not run.done()
        reader.rollback()
        assert "applied migrations/0002_note" in run.result().lines

    assert [db.job(made.job_id or 0)["attempts"] for made in (first, second)] == [1, 1]
    assert (poller.store.session.reconnects, len(db.attempts(running.id))) == (0, 1)


@pytest.mark.usefixtures("impatient")
def test_a_migration_that_never_gets_its_lock_gives_up_and_says_what_to_look_for(
    db: Database, copy: SqlCopy, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(steps, "_TRIES", 2)
    reader = db.connect("postgres", autocommit=False)
    reader.execute("select count(*) from stopline.job")
    copy.migration("0002_note", NOTE)
    with pytest.raises(MigrationError, match=r"^55P03 migrations/0002_note: no lock after 2 tries .* pg_stat_activity"):
        deploy(db, copy.path)
    reader.rollback()
    assert deploy(db, copy.path).lines == ["applied migrations/0002_note"]


def test_the_second_of_two_runs_waits_at_the_lock_and_then_finds_nothing_to_do(db: Database, copy: SqlCopy) -> None:
    copy.migration("0002_note", NOTE)
    holder = db.connect("postgres", autocommit=False)
    holder.execute("lock table stopline.job in access share mode")
    one, two = db.connect("stopline_owner"), db.connect("stopline_owner")
    with in_background(lambda: deploy(db, copy.path, conn=one)) as first:
        wait_until_blocked(db.admin, one.info.backend_pid)
        with in_background(lambda: deploy(db, copy.path, conn=two)) as second:
            assert wait_until_blocked(db.admin, two.info.backend_pid) == [one.info.backend_pid]
            holder.rollback()
            assert first.result().lines == ["applied migrations/0002_note"]
            assert second.result().lines == []


def test_a_run_that_waits_too_long_for_another_says_so(db: Database) -> None:
    other = db.connect("stopline_owner")
    other.execute("select pg_advisory_lock(%s)", [int.from_bytes(b"STOPLINE", "big")])
    with pytest.raises(MigrationError, match=r"^55P03 another migration .* did not end within 0\.05 s"):
        deploy(db, lock_wait_seconds=0.05)
    other.close()
    assert deploy(db).lines == []


def test_a_run_whose_session_was_killed_is_continued_by_the_next(db: Database, copy: SqlCopy) -> None:
    copy.migration("0002_first", "create table first (n integer);")
    copy.migration("0003_note", NOTE)
    holder = db.connect("postgres", autocommit=False)
    holder.execute("lock table stopline.job in access share mode")
    owner = db.connect("stopline_owner")
    with in_background(lambda: deploy(db, copy.path, conn=owner)) as run:
        wait_until_blocked(db.admin, owner.info.backend_pid)
        db.admin.execute("select pg_terminate_backend(%s)", [owner.info.backend_pid])
        with pytest.raises(MigrationError, match=r"^57P01 migrations/0003_note"):
            run.result()
    holder.rollback()
    assert deploy(db, copy.path).lines == ["applied migrations/0003_note"]


def test_an_index_build_that_was_killed_is_done_again_by_the_next_run(db: Database, copy: SqlCopy) -> None:
    insert_job(db)
    copy.migration("0002_extra", OUTSIDE + "create index concurrently if not exists job_extra on job (kind);")
    writer = db.connect("postgres", autocommit=False)
    writer.execute("update stopline.job set priority = 2")
    owner = db.connect("stopline_owner")
    with in_background(lambda: deploy(db, copy.path, conn=owner)) as run:
        wait_until_blocked(db.admin, owner.info.backend_pid)
        db.admin.execute("select pg_terminate_backend(%s)", [owner.info.backend_pid])
        with pytest.raises(MigrationError, match=r"^57P01 migrations/0002_extra"):
            run.result()
    writer.rollback()
    valid = "select indisvalid from pg_index where indexrelid = to_regclass('stopline.job_extra')"
    assert db.rows(valid) == [{"indisvalid": False}]
    assert deploy(db, copy.path).lines == ["applied migrations/0002_extra"]
    assert db.rows(valid) == [{"indisvalid": True}]


def test_policies_are_synced_while_claims_and_enqueues_go_on(db: Database) -> None:
    """The sync waits for nobody who claims, and nobody who claims or enqueues waits for it."""
    db.policy(concurrency=3)
    db.enqueue()
    syncing = db.connect("stopline_owner", autocommit=False)
    syncing.execute("lock table stopline.kind in share row exclusive mode")
    worker = db.connect()
    worker.execute("set lock_timeout = '1s'")
    claim = worker.execute("select status from stopline.claim('work', 'w1', gen_random_uuid(), 1, 900, 'test')")
    assert claim.fetchall() == [("ok",)]
    assert db.enqueue().answer == "created"
    syncing.rollback()
