"""The migration runner: forward only, each step whole or not at all, and a second run does nothing."""

from pathlib import Path
from typing import Any

import pytest
from psycopg import errors as pg

from stopline.migrate.files import SqlFileError
from stopline.migrate.runner import MigrationError
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import SQL, make_database
from tests.support.database import Database, fresh_database
from tests.support.deploys import OUTSIDE, SqlCopy, deploy, policies
from tests.support.rows import insert_job

STATE = """
select to_jsonb(x) from (
  select 'column' as what, c.relname || '.' || a.attname as name,
         concat_ws(' ', format_type(a.atttypid, a.atttypmod), a.attnotnull, pg_get_expr(d.adbin, d.adrelid)) as text
    from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
   where c.relnamespace = 'stopline'::regnamespace and c.relkind in ('r', 'v')
  union all
  select 'relation', c.relname, concat_ws(' ', c.relkind, c.reloptions, c.relacl)
    from pg_class c where c.relnamespace = 'stopline'::regnamespace
  union all
  select 'index', indexname, indexdef from pg_indexes where schemaname = 'stopline'
  union all
  select 'constraint', conname, pg_get_constraintdef(oid)
    from pg_constraint where connamespace = 'stopline'::regnamespace
  union all
  select 'function', oid::regprocedure::text, concat_ws(' ', md5(pg_get_functiondef(oid)), proacl)
    from pg_proc where pronamespace = 'stopline'::regnamespace
  union all
  select 'trigger', tgname, pg_get_triggerdef(oid) from pg_trigger where tgrelid::regclass::text like 'stopline.%%'
) x
where %s
order by what, name, text
"""


def schema(db: Database) -> list[dict[str, Any]]:
    """Everything that migrations and engine make, in words."""
    return db.rows(STATE, True)


def ledger(db: Database) -> list[dict[str, Any]]:
    return db.rows("select * from stopline.schema_migration order by name")


@pytest.fixture
def copy(tmp_path: Path) -> SqlCopy:
    return SqlCopy(tmp_path)


def test_the_schema_is_the_sum_of_the_migrations_in_one_deploy_as_in_many(
    db: Database, server: EmbeddedPostgres, copy: SqlCopy
) -> None:
    copy.migration("0002_note", "alter table job add column note text;")
    deploy(db, copy.path)
    copy.migration("0003_note", OUTSIDE + "create index concurrently if not exists job_note on job (note);")
    deploy(db, copy.path)
    with fresh_database(server, "template1") as at_once:
        make_database(server, at_once.name)
        deploy(at_once, copy.path)
        assert schema(at_once) == schema(db)
    assert len(schema(db)) > 200


def test_a_new_migration_runs_once_and_a_deploy_without_change_runs_nothing(db: Database, copy: SqlCopy) -> None:
    """MI-02: deploy; add a migration; deploy; deploy again."""
    assert deploy(db, copy.path).lines == []
    copy.migration("0002_note", "alter table job add column note text;")
    assert deploy(db, copy.path).lines == ["applied migrations/0002_note"]
    before = ledger(db)
    report = deploy(db, copy.path)
    assert (report.lines, report.changed, report.schema_version) == ([], False, 2)
    assert ledger(db) == before


def test_a_migration_that_was_changed_after_it_had_run_is_refused_naming_the_file(db: Database, copy: SqlCopy) -> None:
    copy.migration("0002_note", "alter table job add column note text;")
    deploy(db, copy.path)
    copy.migration("0002_note", "alter table job add column note varchar;")
    with pytest.raises(MigrationError, match=r"0002_note\.sql was changed .* new migration"):
        deploy(db, copy.path)


def test_a_migration_that_was_renamed_after_it_had_run_is_refused_naming_both_files(
    db: Database, copy: SqlCopy
) -> None:
    copy.migration("0002_note", "create table note (n integer);")
    deploy(db, copy.path)
    copy.remove("0002_note")
    copy.migration("0002_notes", OUTSIDE + "create table if not exists notes (n integer);")
    with pytest.raises(MigrationError, match=r"0002_notes.*0002_note\b"):
        deploy(db, copy.path)
    assert db.rows("select to_regclass('stopline.notes') as notes") == [{"notes": None}]


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("0003_gap", "expected version 0002"),
        ("0001_twin", "neither gaps nor twins"),
        ("2_short", "NNNN_lower_case_words"),
        ("0002_Upper", "NNNN_lower_case_words"),
        ("0002-dash", "NNNN_lower_case_words"),
    ],
)
def test_a_gap_a_twin_or_a_bad_name_is_refused_before_anything_runs(
    db: Database, copy: SqlCopy, name: str, rule: str
) -> None:
    copy.migration(name, "create table note (n integer);")
    copy.engine("95_more", "create table stopline.more (n integer);")
    with pytest.raises(SqlFileError, match=rule) as caught:
        deploy(db, copy.path)
    assert f"{name}.sql" in str(caught.value)
    assert db.rows("select to_regclass('stopline.more') as more") == [{"more": None}]


def test_a_failing_migration_leaves_nothing_half_applied_and_names_the_file_and_the_sqlstate(
    db: Database, copy: SqlCopy
) -> None:
    copy.migration("0002_good", "create table good (n integer);")
    copy.migration("0003_bad", "create table half (n integer);\nselect 1 / 0;")
    with pytest.raises(MigrationError, match=r"^22012 migrations/0003_bad: division by zero"):
        deploy(db, copy.path)
    found = db.rows("select to_regclass('stopline.good')::text as good, to_regclass('stopline.half')::text as half")
    assert found == [{"good": "stopline.good", "half": None}]
    copy.migration("0003_bad", "create table half (n integer);")
    assert deploy(db, copy.path).lines == ["applied migrations/0003_bad"]


def test_a_failing_engine_file_changes_no_function_and_is_named(db: Database, copy: SqlCopy) -> None:
    before = schema(db)
    copy.engine("35_bad", "create or replace function stopline.sweep() returns int language sql as 'select nothing';")
    with pytest.raises(MigrationError, match=r"^42703 engine: .*engine/35_bad\.sql"):
        deploy(db, copy.path)
    assert schema(db) == before


def test_a_changed_engine_is_applied_again_and_an_unchanged_one_is_not(db: Database, copy: SqlCopy) -> None:
    copy.engine("95_more", "create function stopline.more() returns int language sql as 'select 1';")
    assert deploy(db, copy.path).lines == ["applied engine and grants"]
    assert deploy(db, copy.path).lines == []
    assert db.rows("select stopline.more() as more") == [{"more": 1}]


def test_a_dry_run_writes_nothing_and_prints_the_sql(db: Database, copy: SqlCopy) -> None:
    copy.migration("0002_note", "alter table job add column note text;")
    copy.engine("95_more", "select 'more';")
    before = (schema(db), ledger(db))
    source = {"work": "select 'k' as key, '{}'::jsonb as payload"}
    report = deploy(db, copy.path, policies("work"), source, dry_run=True)
    assert (schema(db), ledger(db)) == before
    assert db.rows("select name from stopline.kind") == []
    printed = "\n".join(report.sql)
    for part in ("add column note text", "select 'more';", "function stopline_source.work", "stopline.sync_policy('[{"):
        assert part in printed


def test_what_a_dry_run_prints_can_be_run_as_it_is(db: Database) -> None:
    """Policies are quoted: a description may hold a quote."""
    kinds = policies("work", more='[access]\nenvironment = { NAME = "it\'s" }\n')
    report = deploy(db, SQL, kinds, dry_run=True)
    (statement,) = report.sql
    db.connect("stopline_owner").execute(statement)
    assert db.rows("select name from stopline.kind") == [{"name": "work"}]


def test_a_newer_schema_is_left_alone_and_the_policies_are_synced_all_the_same(db: Database, copy: SqlCopy) -> None:
    """MI-02, roll back: the older code has no value for the newer setting, which keeps its own."""
    copy.migration("0002_limit", "alter table kind add column new_limit integer not null default 3;")
    deploy(db, copy.path, policies("old"))
    db.admin.execute("update stopline.kind set new_limit = 7")
    before = schema(db)
    report = deploy(db, SQL, policies("old", "new", more="[retry]\nbase = '1m'\n"))
    assert "schema is at 0002, newer than 0001 of this code" in report.lines[0]
    assert schema(db) == before
    assert db.rows("select name, new_limit, retry_base::text from stopline.kind order by name") == [
        {"name": "new", "new_limit": 3, "retry_base": "00:01:00"},
        {"name": "old", "new_limit": 7, "retry_base": "00:01:00"},
    ]


def test_a_step_outside_a_transaction_builds_an_index_anew_that_a_dead_run_left_invalid(
    db: Database, copy: SqlCopy
) -> None:
    insert_job(db)
    insert_job(db)
    with pytest.raises(pg.UniqueViolation):
        db.admin.execute("create unique index concurrently job_extra on stopline.job (kind)")
    copy.migration("0002_extra", OUTSIDE + "create index concurrently if not exists job_extra on job (kind);")
    assert deploy(db, copy.path).lines == ["applied migrations/0002_extra"]
    found = db.rows("select indisvalid, indisunique from pg_index where indexrelid = 'stopline.job_extra'::regclass")
    assert found == [{"indisvalid": True, "indisunique": False}]
    assert deploy(db, copy.path).lines == []


def test_a_step_outside_a_transaction_that_fails_is_not_recorded(db: Database, copy: SqlCopy) -> None:
    insert_job(db)
    insert_job(db)
    text = OUTSIDE + "create unique index concurrently if not exists job_extra on job (kind);"
    copy.migration("0002_extra", text)
    with pytest.raises(MigrationError, match=r"^23505 migrations/0002_extra: "):
        deploy(db, copy.path)
    db.admin.execute("delete from stopline.job where id = (select min(id) from stopline.job)")
    assert deploy(db, copy.path).lines == ["applied migrations/0002_extra"]


def test_a_step_outside_a_transaction_holds_one_statement(db: Database, copy: SqlCopy) -> None:
    copy.migration("0002_two", OUTSIDE + "-- one; two\ncreate table a (n int);\ncreate table b (n int);")
    with pytest.raises(SqlFileError, match=r"0002_two\.sql: .* exactly one statement, found 2"):
        deploy(db, copy.path)


def test_a_database_keeps_its_identity_and_another_one_is_a_warning(db: Database) -> None:
    report = deploy(db, identity="a restored copy")
    assert (report.lines, len(report.warnings)) == ([], 1)
    assert "belongs to 'test', not to 'a restored copy'" in report.warnings[0]
    assert db.rows("select identity from stopline.installation") == [{"identity": "test"}]


def test_a_connection_that_is_not_in_autocommit_is_refused(db: Database) -> None:
    with pytest.raises(MigrationError, match="autocommit"):
        deploy(db, conn=db.connect("stopline_owner", autocommit=False))
