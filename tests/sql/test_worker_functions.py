"""The sweeper and the migrator as functions: one call, one result line."""

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stopline_cli.local.folders import CHECKOUT
from stopline_cli.local.functions import FunctionFailed, FunctionProcess
from tests.support.blocking import in_background, until
from tests.support.database import Database
from tests.support.poller import Poller

POLICY = """
owner = "tests"
description = "a kind for tests"
idempotent = true

[run]
timeout = "30s"
"""


@pytest.fixture
def functions() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def migrator(functions: ExitStack, db: Database, jobs: Path) -> FunctionProcess:
    env = {
        **db.environment("stopline_owner"),
        "STOPLINE_SQL_DIR": str(CHECKOUT / "sql"),
        "STOPLINE_JOBS_DIR": str(jobs),
    }
    return functions.enter_context(FunctionProcess("migrator", "lambdas/migrator/handler.py", env, 60))


def folder(jobs: Path, kind: str, policy: str = POLICY, source: str | None = None) -> None:
    (jobs / kind).mkdir(parents=True)
    (jobs / kind / "policy.toml").write_text(policy)
    (jobs / kind / "handler.py").write_text("def run(job): return None")
    if source is not None:
        (jobs / kind / "source.sql").write_text(source)


def test_the_sweeper_ends_attempts_whose_lease_ran_out_and_says_how_many(db: Database, functions: ExitStack) -> None:
    """RE-10: one run after the lease, nothing is left claimed."""
    db.policy("work")
    for _ in range(5):
        db.enqueue("work")
    assert len(Poller(db).claim(batch=5).jobs) == 5
    db.move("1h")
    env = db.environment("stopline_sweeper")
    sweeper = functions.enter_context(FunctionProcess("sweeper", "lambdas/sweeper/handler.py", env, 60))
    result = sweeper.invoke({})
    assert result["sweep"]["crashed_to_pending"] == 5
    assert result["purge"]["jobs"] == 0
    assert db.rows("select distinct state, attempts from stopline.job") == [{"state": "pending", "attempts": 1}]
    assert [line for line in map(json.loads, sweeper.log) if line["message"] == "sweep"]


def test_a_sweeper_that_is_killed_in_mid_run_leaves_nothing_locked_and_the_next_one_does_it_all(
    db: Database, functions: ExitStack
) -> None:
    """RE-07: the sweeper is no job of its queue and holds no lock that outlives it."""
    db.policy("work")
    for _ in range(5):
        db.enqueue("work")
    assert len(Poller(db).claim(batch=5).jobs) == 5
    db.move("1h")
    env = db.environment("stopline_sweeper")
    first, second = (
        functions.enter_context(FunctionProcess("sweeper", "lambdas/sweeper/handler.py", env, 60)) for _ in range(2)
    )
    # The sweep has its jobs locked and cannot write down the first one's attempt.
    holder = db.connect("postgres", autocommit=False)
    holder.execute("lock table stopline.attempt in access exclusive mode")
    with in_background(lambda: first.invoke({})) as invocation:
        until(lambda: waiting(db) == 1, "the sweep waits in the middle of its work")
        os.kill(first.pid or 0, signal.SIGKILL)
        with pytest.raises(FunctionFailed):
            invocation.result(10)
    # The server ends the session that lost its client; what it had done so far is undone.
    db.rows(
        "select pg_terminate_backend(pid, 5000) from pg_stat_activity"
        " where usename = 'stopline_sweeper' and datname = current_database()"
    )
    holder.rollback()
    assert second.invoke({})["sweep"]["crashed_to_pending"] == 5
    assert db.rows("select distinct state, attempts from stopline.job") == [{"state": "pending", "attempts": 1}]


def waiting(db: Database) -> int:
    """Sweepers of this database that wait for a lock."""
    return len(
        db.rows(
            "select from pg_stat_activity where usename = 'stopline_sweeper' and wait_event_type = 'Lock'"
            " and datname = current_database()"
        )
    )


def test_the_migrator_brings_policies_and_sources_and_finds_nothing_to_do_the_second_time(
    db: Database, functions: ExitStack, tmp_path: Path
) -> None:
    """MI-06: repeating a deploy is harmless."""
    folder(tmp_path, "mine", source="select 'a' as key, '{}'::jsonb as payload")
    function = migrator(functions, db, tmp_path)
    first, second = function.invoke({}), function.invoke({})
    assert any("mine" in line for line in first["lines"])
    assert second["lines"] == []
    assert db.rows("select name, owner from stopline.kind where retired_at is null") == [
        {"name": "mine", "owner": "tests"}
    ]


def test_a_migration_that_fails_says_why_in_the_bytes_that_cloudformation_shows(
    db: Database, functions: ExitStack, tmp_path: Path
) -> None:
    """MI-01: SQLSTATE first, cut to 1,500 bytes."""
    folder(tmp_path, "mine", source=f"select 'a' as key '{'ü' * 3000}'")
    with pytest.raises(FunctionFailed) as failed:
        migrator(functions, db, tmp_path).invoke({})
    assert failed.value.error_type == "MigrationFailed"
    assert len(failed.value.message.encode()) <= 1500
    assert failed.value.message.startswith("42601 source/mine: syntax error")


def test_a_policy_that_breaks_a_rule_fails_the_migration_by_file_and_key(
    db: Database, functions: ExitStack, tmp_path: Path
) -> None:
    folder(tmp_path, "mine", policy=POLICY.replace("idempotent = true", "idempotent = true\nspeed = 5"))
    with pytest.raises(FunctionFailed, match=r"mine/policy.toml: speed"):
        migrator(functions, db, tmp_path).invoke({})
