"""How a kind's source.sql becomes a function that reads only what the application granted."""

from typing import Any

import pytest

from stopline.migrate.runner import MigrationError, Report
from tests.support.application import SOURCE, make_items
from tests.support.database import Database
from tests.support.deploys import deploy, policies

WHO = "select current_user::text as key, '{}'::jsonb as payload"


def deploy_source(db: Database, source: str | None, **options: Any) -> Report:
    """A deploy of the kind `work` with this source.sql, or without one."""
    sources = {} if source is None else {"work": source}
    return deploy(db, kinds=policies("work"), sources=sources, **options)


def tick(db: Database) -> dict[str, Any]:
    row = db.connect().execute("select stopline.tick('work')").fetchone()
    assert row is not None
    return dict(row[0])


def wrapped(db: Database) -> list[str]:
    query = "select proname as name from pg_proc where pronamespace = 'stopline_source'::regnamespace"
    return [row["name"] for row in db.rows(query)]


def test_a_source_runs_as_the_role_that_owns_nothing_but_sources(db: Database) -> None:
    deploy_source(db, WHO)
    assert tick(db)["counts"]["created"] == 1
    assert [row["key"] for row in db.rows("select key from stopline.job")] == ["stopline_source"]


def test_a_source_may_end_with_a_semicolon_and_a_comment(db: Database) -> None:
    make_items(db, 2)
    assert deploy_source(db, SOURCE).warnings == []
    assert tick(db)["counts"]["created"] == 2


def test_a_source_is_wrapped_once_and_again_when_it_changes(db: Database) -> None:
    assert "wrapped source of work" in deploy_source(db, WHO).lines
    assert deploy_source(db, WHO).lines == []
    assert deploy_source(db, WHO.replace("current_user", "session_user")).lines == ["wrapped source of work"]
    tick(db)
    assert [row["key"] for row in db.rows("select key from stopline.job")] == ["stopline_worker"]


def test_a_source_whose_file_is_gone_is_dropped_and_no_longer_feeds(db: Database) -> None:
    deploy_source(db, WHO)
    assert deploy_source(db, None).lines == ["dropped source of work"]
    assert wrapped(db) == []
    assert (tick(db)["counts"]["created"], tick(db)["note"]) == (0, None)
    assert deploy_source(db, None).lines == []


def test_a_table_that_was_not_granted_is_a_note_in_each_tick_and_no_rows(db: Database) -> None:
    make_items(db, 1)
    db.admin.execute("revoke select on app.item from stopline_source")
    deploy_source(db, SOURCE)
    answer = tick(db)
    assert (answer["status"], answer["counts"]["created"]) == ("empty", 0)
    assert answer["note"] == "source.sql of kind work failed: 42501 permission denied for table item"
    db.admin.execute("grant select on app.item to stopline_source")
    answer = tick(db)
    assert (answer["status"], answer["counts"]["created"], answer["note"]) == ("ok", 1, None)


@pytest.mark.parametrize("table", ["stopline.job_data", "stopline.job", "stopline.kind", "stopline.event"])
def test_a_source_cannot_read_the_queue(db: Database, table: str) -> None:
    deploy_source(db, f"select 'k' as key, to_jsonb(t) as payload from {table} t")
    assert "42501" in tick(db)["note"]
    assert db.rows("select id from stopline.job") == []


def test_a_source_whose_table_comes_later_is_kept_with_a_warning_until_it_is_there(db: Database) -> None:
    (warning,) = deploy_source(db, SOURCE).warnings
    assert "app" in warning
    assert "3F000" in tick(db)["note"] or "42P01" in tick(db)["note"]
    make_items(db, 1)
    assert tick(db)["counts"]["created"] == 1
    assert deploy_source(db, SOURCE).warnings == []
    assert deploy_source(db, SOURCE).lines == []


def test_a_source_that_never_found_its_table_is_dropped_with_its_file_all_the_same(db: Database) -> None:
    deploy_source(db, SOURCE)
    assert deploy_source(db, None).lines == ["dropped source of work"]
    assert wrapped(db) == []


def test_a_table_without_its_schema_is_not_found_whatever_lies_on_a_search_path(db: Database) -> None:
    db.admin.execute("create table public.item (id integer); grant select on public.item to stopline_source")
    (warning,) = deploy_source(db, "select 'k' as key, '{}'::jsonb as payload from item").warnings
    assert 'relation "item" does not exist' in warning


@pytest.mark.parametrize(
    ("source", "state"),
    [
        ("selekt 1", "42601"),
        ("with gone as (delete from app.item returning 1) select 'k' as key, '{}'::jsonb as payload", "0A000"),
    ],
)
def test_a_source_that_is_no_query_of_key_and_payload_fails_the_deploy_by_name(
    db: Database, source: str, state: str
) -> None:
    make_items(db, 1)
    db.admin.execute("grant all on app.item to stopline_source")
    with pytest.raises(MigrationError, match=f"^{state} source/work: "):
        deploy_source(db, source)
    assert wrapped(db) == []


def test_a_source_without_a_payload_is_kept_with_a_warning_that_names_the_column(db: Database) -> None:
    """The application's own deploy may still have to add the column."""
    (warning,) = deploy_source(db, "select 'k' as key").warnings
    assert "column s.payload does not exist" in warning
    assert "column s.payload does not exist" in tick(db)["note"]


def test_nobody_but_the_engine_may_call_a_source(db: Database) -> None:
    deploy_source(db, WHO)
    allowed = db.rows(
        "select r.rolname as role from pg_roles r, pg_proc p where p.pronamespace = 'stopline_source'::regnamespace"
        " and has_function_privilege(r.oid, p.oid, 'execute') and not r.rolsuper and r.rolname not like 'pg_%%' and %s",
        True,
    )
    assert {row["role"] for row in allowed} == {"stopline_owner", "stopline_source"}
