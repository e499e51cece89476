"""Values that the database refuses in any column, whoever writes; and the audit, which only grows."""

from typing import LiteralString

import psycopg
import pytest
from psycopg import errors as pg
from psycopg import sql

from stopline.limits import CHECKPOINT_BYTES, PAYLOAD_BYTES, RESULT_BYTES
from tests.support.database import Database
from tests.support.poller import Poller
from tests.support.rows import insert_job

ABSURD = ("infinity", "-infinity", "36869-01-01 00:00:00+00", "9999-12-31 00:00:00+00", "1999-12-31 23:59:59+00")

SEEDS: dict[str, LiteralString] = {
    "kind": "update stopline.kind set retired_at = null",
    "job": "update stopline.job set acknowledged_at = null",
    "attempt": "insert into stopline.attempt"
    " (job_id, fence, kind, round, attempt, started_at, finished_at, worker, outcome)"
    " values (1, 1, 'work', 1, 1, now(), now(), 'w1', 'succeeded')",
    "reconcile_check": "insert into stopline.reconcile_check values (1, 1, 1, now(), 'w1', 'applied')",
    "event": "insert into stopline.event (at, action, actor) values (now(), 'noted', 'me')",
    "heartbeat": "insert into stopline.heartbeat values ('somebody', now())",
    "source_key": "insert into stopline.source_key values ('work', 'k', now(), 1)",
    "occurrence": "insert into stopline.occurrence values ('work', now(), now())",
    "installation": "update stopline.installation set reason = reason",
    "schema_migration": "update stopline.schema_migration set name = name",
}
"""A statement for each table with a time, after which it has a row."""


@pytest.mark.parametrize(
    ("column", "limit"), [("payload", PAYLOAD_BYTES), ("result", RESULT_BYTES), ("checkpoint", CHECKPOINT_BYTES)]
)
def test_oversize_data_is_refused_naming_the_column_the_bytes_and_the_limit(
    db: Database, column: str, limit: int
) -> None:
    """EN-05: the limit holds in the database too, to the byte, and stands in the message."""
    job = insert_job(db)
    statement = sql.SQL("update stopline.job_data set {} = to_jsonb(repeat('x', %s)) where job_id = %s").format(
        sql.Identifier(column)
    )
    db.admin.execute(statement, [limit - 2, job])
    rule = f"{column} of job {job}: {limit + 1} bytes as JSON text; the limit is {limit} bytes"
    with pytest.raises(pg.CheckViolation, match=rule):
        db.admin.execute(statement, [limit - 1, job])


def test_sizes_are_looked_at_when_data_is_written_and_not_again(db: Database) -> None:
    """A row that is too large already can still be claimed, checkpointed and finished."""
    db.policy()
    job = insert_job(db)
    db.admin.execute("set session_replication_role = replica")
    db.admin.execute("update stopline.job_data set payload = to_jsonb(repeat('x', 300000))")
    db.admin.execute("reset session_replication_role")
    poller = Poller(db)
    claimed = poller.one()
    poller.store.save_checkpoint(claimed.id, claimed.fence, '{"step": 1}')
    assert poller.succeed(claimed, result='"done"').state == "succeeded"
    row = db.job(job)
    assert (len(row["payload"]), row["checkpoint"], row["result"]) == (300_000, {"step": 1}, "done")


def test_an_error_text_beyond_its_bytes_is_refused(db: Database) -> None:
    insert_job(db, "abandoned", last_error="x" * 8192)
    with pytest.raises(pg.CheckViolation, match="error_text_is_bounded"):
        insert_job(db, "abandoned", last_error="x" * 8193)


def test_an_absurd_time_is_refused_in_every_column_that_holds_one(db: Database) -> None:
    """CL-01: no stored time is one that a client cannot read."""
    db.policy()
    insert_job(db)
    columns = db.rows(
        "select c.table_name as table, c.column_name as column from information_schema.columns c"
        "  join information_schema.tables t using (table_schema, table_name)"
        " where c.table_schema = 'stopline' and t.table_type = 'BASE TABLE' and c.data_type like 'timestamp%%' and %s",
        True,
    )
    assert {column["table"] for column in columns} == SEEDS.keys()
    for seed in SEEDS.values():
        assert db.admin.execute(seed).rowcount > 0
    accepted = []
    for column in columns:
        table, name = sql.Identifier("stopline", column["table"]), sql.Identifier(column["column"])
        if column["table"] == "event":
            statement = sql.SQL("insert into {} ({}, action, actor) values (%s, 'noted', 'me')").format(table, name)
        else:
            statement = sql.SQL("update {} set {} = %s").format(table, name)
        for time in ABSURD:
            try:
                with db.admin.transaction():
                    db.admin.execute(statement, [time])
            except psycopg.IntegrityError as error:
                if error.diag.constraint_name == "instant_is_between_2000_and_9999":
                    continue
            accepted.append((column["table"], column["column"], time))
    assert accepted == []


def test_money_that_is_not_a_number_is_refused_in_every_column_that_holds_it(db: Database) -> None:
    db.policy()
    insert_job(db)
    db.admin.execute("insert into stopline.spend (kind, day, usd) values ('work', '2026-01-01', 1)")
    db.admin.execute(SEEDS["attempt"])
    columns = db.rows(
        "select c.table_name as table, c.column_name as column from information_schema.columns c"
        "  join information_schema.tables t using (table_schema, table_name)"
        " where c.table_schema = 'stopline' and t.table_type = 'BASE TABLE' and c.data_type = 'numeric'"
    )
    assert len(columns) >= 8
    accepted = []
    for column in columns:
        statement = sql.SQL("update stopline.{} set {} = %s::numeric").format(
            sql.Identifier(column["table"]), sql.Identifier(column["column"])
        )
        for money in ("NaN", "Infinity", "-Infinity", "-0.01"):
            try:
                with db.admin.transaction():
                    db.admin.execute(statement, [money])
            except (pg.CheckViolation, pg.NumericValueOutOfRange):
                continue
            accepted.append((column["table"], column["column"], money))
    assert accepted == []


@pytest.mark.parametrize(
    "change",
    ["update stopline.event set reason = 'x'", "delete from stopline.event", "truncate stopline.event"],
)
def test_the_audit_cannot_be_changed(db: Database, change: LiteralString) -> None:
    db.admin.execute(SEEDS["event"])
    before = db.rows("select * from stopline.event")
    with pytest.raises(pg.RestrictViolation, match="append-only"):
        db.admin.execute(change)
    assert db.rows("select * from stopline.event") == before
