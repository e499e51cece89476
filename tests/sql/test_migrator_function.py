"""The migrator as the function that a deploy's trigger calls: what it answers, waits for, refuses and never does."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, LiteralString

import pytest

from stopline_cli.local.functions import FunctionFailed, FunctionProcess
from stopline_cli.local.prepare import JOBS, SAMPLES, SQL
from tests.support.blocking import in_background, wait_until_blocked
from tests.support.database import Database
from tests.support.deploys import SqlCopy
from tests.support.rows import insert_job

LOUD = """
do $$ begin
  raise exception using errcode = 'P0042', message = repeat('Überlänge 😀 ', 2000);
end $$;
"""


class Migrators:
    """Functions of one deployment, with the shipped kinds and `sql/` or a copy of it."""

    def __init__(self, db: Database, stack: ExitStack) -> None:
        self.db = db
        self._stack = stack

    def one(self, sql_dir: Path = SQL, **env: str) -> FunctionProcess:
        place = {"STOPLINE_SQL_DIR": str(sql_dir), "STOPLINE_JOBS_DIR": str(JOBS)}
        values = {**self.db.environment("stopline_owner"), **place, **env}
        return self._stack.enter_context(FunctionProcess("migrator", "lambdas/migrator/handler.py", values, 60))


@pytest.fixture
def migrators(db: Database) -> Iterator[Migrators]:
    db.admin.execute((SAMPLES / "schema.sql").read_bytes())
    with ExitStack() as stack:
        yield Migrators(db, stack)


def refusal(function: FunctionProcess) -> str:
    with pytest.raises(FunctionFailed) as failed:
        function.invoke({})
    return failed.value.message


def newest_session(db: Database, number: int) -> int:
    """The newest session of the owner, once there are so many."""
    query: LiteralString = (
        "select pid from pg_stat_activity where datname = %s and usename = 'stopline_owner' order by backend_start"
    )
    pause = threading.Event()
    for _ in range(1000):
        pids = [int(row["pid"]) for row in db.rows(query, db.name)]
        if len(pids) >= number:
            return pids[-1]
        pause.wait(0.02)
    raise AssertionError(f"the owner never had {number} sessions")


def test_a_second_run_answers_as_the_first_and_does_nothing(migrators: Migrators) -> None:
    """MI-06: a new version of the CDK, or of the function, calls it again."""
    first = migrators.one().invoke({})
    ledger = migrators.db.rows("select * from stopline.schema_migration order by name")
    for event in ({}, {"RequestType": "Update"}):
        again = migrators.one().invoke(event)
        assert (again["schema_version"], again["lines"]) == (first["schema_version"], [])
    assert migrators.db.rows("select * from stopline.schema_migration order by name") == ledger


def test_a_run_that_comes_while_another_is_at_work_waits_and_then_answers_as_it_did(
    migrators: Migrators, tmp_path: Path
) -> None:
    """MI-01: when the trigger's wait passes it calls once more."""
    db = migrators.db
    copy = SqlCopy(tmp_path)
    copy.migration("0002_note", "alter table job add column note text;")
    holder = db.connect("postgres", autocommit=False)
    holder.execute("lock table stopline.job in access share mode")
    answers: list[dict[str, Any]] = []
    one, two = migrators.one(copy.path), migrators.one(copy.path)
    with in_background(lambda: answers.append(one.invoke({}))):
        first = newest_session(db, 1)
        wait_until_blocked(db.admin, first)
        with in_background(lambda: answers.append(two.invoke({}))):
            second = newest_session(db, 2)
            assert wait_until_blocked(db.admin, second) == [first]
            holder.rollback()
    assert [answer["schema_version"] for answer in answers] == [2, 2]
    assert [("applied migrations/0002_note" in answer["lines"]) for answer in answers] == [True, False]


def test_an_error_begins_with_its_sqlstate_names_the_file_and_fits_where_cloudformation_shows_it(
    migrators: Migrators, tmp_path: Path
) -> None:
    """MI-01: CloudFormation cuts a reason at 4,096 bytes, and the trigger adds its own words."""
    copy = SqlCopy(tmp_path)
    copy.migration("0002_loud", LOUD)
    message = refusal(migrators.one(copy.path))
    assert message.startswith("P0042 migrations/0002_loud: Überlänge 😀")
    assert 1000 < len(message.encode()) <= 1500


def test_a_failed_migration_fails_the_call_leaves_every_row_and_the_next_deploy_goes_on(
    migrators: Migrators, tmp_path: Path
) -> None:
    """MI-01, MI-02: the deploy fails at once, and nothing has to be cleaned up by hand."""
    db = migrators.db
    db.policy("work")
    job = insert_job(db)
    before = db.job(job)
    copy = SqlCopy(tmp_path)
    copy.migration("0002_bad", "update job set priority = 3; select 1 / 0;")
    assert refusal(migrators.one(copy.path)).startswith("22012 migrations/0002_bad: division by zero")
    assert db.job(job) == before
    copy.migration("0002_bad", "select 1;")
    assert "applied migrations/0002_bad" in migrators.one(copy.path).invoke({})["lines"]
    assert db.job(job) == before


def test_the_function_of_a_rolled_back_deploy_leaves_the_newer_schema_alone_and_syncs_its_policies(
    migrators: Migrators, tmp_path: Path
) -> None:
    """MI-02: on roll back CloudFormation calls the old version on the new schema."""
    copy = SqlCopy(tmp_path)
    copy.migration("0002_note", "alter table job add column note text;")
    migrators.one(copy.path).invoke({})
    migrators.db.admin.execute("update stopline.kind set max_attempts = 2 where name = 'close_conversation'")
    answer = migrators.one().invoke({})
    assert answer["schema_version"] == 2
    assert "newer than 0001 of this code" in answer["lines"][0]
    assert "policy of close_conversation changed: max_attempts" in answer["lines"]
    assert migrators.db.rows("select note from stopline.job") == []


def test_asked_for_the_doctor_it_compares_with_its_own_asset_and_changes_nothing(
    migrators: Migrators, tmp_path: Path
) -> None:
    copy = SqlCopy(tmp_path)
    copy.migration("0002_note", "alter table job add column note text;")
    migrators.one().invoke({})
    ledger = migrators.db.rows("select * from stopline.schema_migration order by name")
    rows = migrators.one(copy.path).invoke({"doctor": True})["findings"]
    found = {(row["part"], row["name"]): row for row in rows}
    assert found["schema", "version"]["found"] == "at 0001; this code needs 0002"
    assert found["clock", "source of time"]["level"] == "ok"
    assert found["policies", "in step"]["level"] == "ok"
    assert found["installation", "this deployment"]["level"] == "ok"
    assert migrators.db.rows("select * from stopline.schema_migration order by name") == ledger


def test_asked_to_adopt_it_gives_the_database_to_its_own_deployment_and_writes_who_asked(migrators: Migrators) -> None:
    migrators.one().invoke({})
    copy = migrators.one(STOPLINE_INSTALLATION="cluster-COPY")
    assert len(copy.invoke({})["warnings"]) == 1
    ask = {"adopt": {"actor": "arn:aws:sts::1:assumed-role/ops/ada", "reason": "restored"}}
    answer = copy.invoke(ask)
    assert (answer["changed"], answer["identity"]) == (True, "cluster-COPY")
    assert copy.invoke(ask)["changed"] is False
    assert copy.invoke({})["warnings"] == []
    (event,) = migrators.db.rows("select actor, reason from stopline.event where action = 'adopted'")
    assert event == {"actor": ask["adopt"]["actor"], "reason": "restored"}


@pytest.mark.parametrize("asked", [{}, {"actor": "ada"}, {"reason": "restored"}])
def test_an_adoption_without_a_name_or_a_reason_is_refused(migrators: Migrators, asked: dict[str, str]) -> None:
    migrators.one().invoke({})
    with pytest.raises(FunctionFailed, match="identity, actor and reason must be given"):
        migrators.one().invoke({"adopt": asked})
