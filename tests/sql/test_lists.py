"""Each closed list of words is written once, in `stopline.states`; the database accepts exactly its words."""

import re
from enum import StrEnum
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql

from stopline.failure import Failure
from stopline.states import (
    TERMINAL,
    ClaimStatus,
    DueRule,
    EnqueueAnswer,
    FinishAnswer,
    Outcome,
    ReceiverAnswer,
    RecordAnswer,
    State,
    StopReason,
)
from stopline.store.producer import Item, enqueue_many
from stopline_cli.local.prepare import Connection
from tests.support.database import Database
from tests.support.policies import policy_row
from tests.support.poller import Poller

STATE_COLUMNS = {
    "synced_at",
    "retired_at",
    "paused_at",
    "paused_until",
    "paused_by",
    "paused_why",
    "probe_until",
    "probe_job",
    "probe_fence",
    "breaker_level",
    "breaker_reset_at",
}


def check_expression(admin: Connection, table: str, constraint: str) -> str:
    row = admin.execute(
        "select pg_get_expr(conbin, conrelid) from pg_constraint where conrelid = %s::regclass and conname = %s",
        [table, constraint],
    ).fetchone()
    assert row is not None, f"{table} has no constraint {constraint}"
    return str(row[0])


def is_accepted(admin: Connection, expression: str, column: str, word: str) -> bool:
    """Whether the CHECK holds for a row whose `column` is `word` and whose other columns are null."""
    query = sql.SQL("select ({}) from (select %s::text as {}, null::text as {}) as row").format(
        sql.SQL(expression),
        sql.Identifier(column),
        sql.Identifier("late_outcome" if column == "outcome" else "outcome"),
    )
    row = admin.execute(query, [word]).fetchone()
    assert row is not None
    return row[0] is not False


@pytest.mark.parametrize(
    ("table", "constraint", "column", "words"),
    [
        ("stopline.job", "state_is_known", "state", State),
        ("stopline.job", "outcome_is_known", "last_outcome", Outcome),
        ("stopline.job", "stop_reason_is_known", "stop_reason", StopReason),
        ("stopline.job", "due_rule_is_known", "due_rule", DueRule),
        ("stopline.attempt", "attempt_outcome_is_known", "outcome", Outcome),
        ("stopline.attempt", "attempt_outcome_is_known", "late_outcome", Outcome),
        ("stopline.reconcile_check", "answer_is_known", "answer", ReceiverAnswer),
    ],
)
def test_a_column_accepts_exactly_the_words_of_its_list(
    db: Database, table: str, constraint: str, column: str, words: type[StrEnum]
) -> None:
    expression = check_expression(db.admin, table, constraint)
    assert set(re.findall(r"'([a-z_]+)'", expression)) == set(words)
    assert [word for word in words if not is_accepted(db.admin, expression, column, word)] == []
    assert not is_accepted(db.admin, expression, column, "running")


def test_the_rules_on_ended_jobs_mean_the_same_states_as_the_library(db: Database) -> None:
    for constraint in ("terminal_row_has_a_finish_time", "terminal_row_has_a_stop_reason"):
        expression = check_expression(db.admin, "stopline.job", constraint)
        assert set(re.findall(r"'([a-z_]+)'", expression)) == TERMINAL


def test_each_status_of_a_claim_can_be_met(db: Database) -> None:
    db.policy(max_attempts=10)
    poller = Poller(db)
    met = {poller.claim().status}
    for _ in range(3):
        db.enqueue()
    met.add(poller.claim().status)
    db.policy(max_attempts=10, concurrency=1)
    met.add(poller.claim().status)
    db.policy(max_attempts=10, per_attempt_usd="1", daily_budget_usd="1")
    poller.claim()
    met.add(poller.claim().status)
    db.admin.execute("update stopline.kind set paused_at = stopline.clock(), paused_by = 'me', paused_why = 'test'")
    met.add(poller.claim().status)
    met.add(poller.store.claim("work", "w1", uuid4(), 1, 900, "another installation").status)
    assert met == set(ClaimStatus)


def test_each_answer_of_an_enqueue_can_be_met(db: Database) -> None:
    db.policy()
    db.enqueue(key="stopped")
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.PERMANENT)
    db.enqueue(key="open")
    items = [
        Item({}, key="new"),
        Item({}, key="open"),
        Item({"other": 1}, key="open"),
        Item({}, key="stopped"),
        Item(float("nan")),
    ]
    answers = [made.answer for made in enqueue_many(db.connect("stopline_producer"), "work", items)]
    assert answers == ["created", "open", "conflict", "held", "invalid"]
    assert set(answers) == set(EnqueueAnswer)


def test_each_answer_of_a_finish_can_be_met(db: Database) -> None:
    db.policy()
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    answers = [
        poller.store.fail(job.id, job.fence + 7, Failure(Outcome.TRANSIENT, "Busy", "busy"), None).answer,
        poller.fail(job).answer,
        poller.fail(job).answer,
        poller.fail(job, Outcome.PERMANENT).answer,
    ]
    assert answers == ["unknown", "recorded", "already", "late"]
    assert set(answers) == set(FinishAnswer)


def test_each_answer_of_a_recorded_check_can_be_met(db: Database) -> None:
    db.policy(idempotent=False, reconciles=True, settle=0)
    job = db.enqueue().job_id or 0
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.UNCERTAIN)
    answers = []
    for _ in range(2):
        assert poller.store.due_checks("work", "w1", 1, 900, db.identity)
        db.move("1h")
    for number in (1, 2, 2):
        answers.append(poller.store.record_check(job, 1, number, ReceiverAnswer.UNKNOWN, "busy").answer)
    assert answers == ["stale", "recorded", "already_done"]
    assert set(answers) == set(RecordAnswer)


def accepted(db: Database, outcome: str, stop_reason: str | None) -> bool:
    """Whether the database takes this end of a fresh attempt from a worker."""
    db.enqueue()
    job = Poller(db).one()
    call = "select answer from stopline.fail(%s, %s, %s, 'Bad', 'bad', 'f', null, %s)"
    try:
        db.connect().execute(call, [job.id, job.fence, outcome, stop_reason])
    except psycopg.DatabaseError as error:
        if error.sqlstate != "SL001":
            raise
        return False
    return True


def test_a_worker_may_report_every_outcome_but_those_that_have_a_call_of_their_own(db: Database) -> None:
    db.policy()
    taken = {word for word in [*Outcome, "running"] if accepted(db, word, None)}
    assert taken == set(Outcome) - {Outcome.SUCCEEDED, Outcome.RELEASED}


def test_a_worker_may_name_only_the_stop_reasons_that_it_alone_can_know(db: Database) -> None:
    db.policy()
    taken = {word for word in [*StopReason, "tired"] if accepted(db, Outcome.PERMANENT, word)}
    assert taken == {StopReason.PERMANENT_FAILURE, StopReason.UNREADABLE, StopReason.STEP_LIMIT}
    assert not accepted(db, Outcome.TRANSIENT, StopReason.PERMANENT_FAILURE)


def test_the_columns_of_a_kind_are_the_keys_of_a_policy_and_its_state(db: Database) -> None:
    columns = {
        row["name"]
        for row in db.rows(
            "select column_name as name from information_schema.columns"
            " where table_schema = 'stopline' and table_name = 'kind'"
        )
    }
    assert columns == policy_row("work", {}).keys() | STATE_COLUMNS


def test_every_setting_of_a_policy_is_read_back_as_it_was_written(db: Database) -> None:
    """Each key once with a value of its own, so that a forgotten or crossed column shows."""
    row = policy_row("work", {})
    plain = {"name", "effect", "isolation", "idempotent", "hold_key", "own_metrics", "breaker_share", "reconciles"}
    spans = {
        entry["name"]
        for entry in db.rows(
            "select column_name as name from information_schema.columns where table_schema = 'stopline'"
            " and table_name = 'kind' and data_type = 'interval'"
        )
    }
    changes: dict[str, object] = {}
    for number, column in enumerate(sorted(row.keys() - plain), start=101):
        if column.endswith("_usd"):
            budget = column in {"per_job_usd", "daily_budget_usd"}
            changes[column] = f"{number * 100 if budget else number}.25"
        elif column in {"owner", "description", "poller", "schedule", "timezone"}:
            changes[column] = f"text {number}"
        else:
            changes[column] = number + 0.5 if column in spans else number
    written = db.policy("work", **changes)
    (read,) = db.connect("stopline_operator").execute("select stopline.list_kinds()").fetchone() or ({},)
    assert {column: str(read[column]) for column in written} == {
        column: str(value) for column, value in written.items()
    }
