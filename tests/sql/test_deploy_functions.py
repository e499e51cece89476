"""The bootstrap as a function, and how a deploy reaches a database that is not ready yet."""

import time
from contextlib import closing

import pytest

from stopline.errors import InfrastructureError
from stopline.migrate.reach import reach
from stopline.settings import bootstrap_settings
from stopline_cli.local.folders import CHECKOUT
from stopline_cli.local.functions import FunctionFailed, FunctionProcess
from tests.support.database import Database


def environment(db: Database, user: str) -> dict[str, str]:
    return {**db.environment(user), "STOPLINE_SQL_DIR": str(CHECKOUT / "sql")}


def test_the_bootstrap_run_again_changes_nothing_and_says_as_whom_it_ran(db: Database) -> None:
    """MI-06: an upgrade of the CDK or the layer runs it again."""
    query = "select rolname, rolcanlogin, rolconfig from pg_roles where rolname like 'stopline%%' order by 1"
    before = db.rows(query)
    with FunctionProcess("bootstrap", "lambdas/bootstrap/handler.py", environment(db, "postgres"), 60) as function:
        result = function.invoke({})
        assert function.invoke({}) == result
    assert result["master"] == "postgres"
    assert db.rows(query) == before


def test_a_bootstrap_without_the_right_to_make_roles_fails_with_the_sqlstate_first(db: Database) -> None:
    """MI-01: the deploy fails with what the database said, short enough for CloudFormation."""
    with (
        FunctionProcess(
            "bootstrap", "lambdas/bootstrap/handler.py", environment(db, "stopline_monitor"), 60
        ) as function,
        pytest.raises(FunctionFailed) as failed,
    ):
        function.invoke({})
    told = str(failed.value)
    assert "BootstrapFailed" in told
    assert "42501 permission denied" in told
    assert len(told.encode()) < 2000


def test_a_database_that_lets_us_in_a_little_later_is_reached(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """CO-13: a cluster that is just starting, or a right that is not known everywhere yet, does not fail a deploy."""
    pauses: list[float] = []

    def role_becomes_known(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 2:
            db.admin.execute("create role latecomer login")

    monkeypatch.setattr("stopline.migrate.reach.time.sleep", role_becomes_known)
    try:
        with closing(reach(bootstrap_settings(environment(db, "latecomer")).target)) as conn:
            assert conn.execute("select current_user").fetchone() == ("latecomer",)
        assert len(pauses) == 2
    finally:
        db.admin.execute("drop role if exists latecomer")


def test_a_database_that_never_answers_fails_the_deploy_within_its_time_naming_it(db: Database) -> None:
    """MI-01: an unreachable database is an error within a minute, not a deploy that hangs."""
    began = time.monotonic()
    with pytest.raises(InfrastructureError, match=r"cannot connect to database .* as nobody_there: .*tried for 0\.2 s"):
        reach(bootstrap_settings(environment(db, "nobody_there")).target, seconds=0.2, pause=0.01)
    assert time.monotonic() - began < 5
