"""Bootstrap by an administrator who is no superuser, as on Aurora. Roles belong to a server, so this has its own."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline.migrate.bootstrap import bootstrap
from stopline.migrate.runner import MigrationError, migrate
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import SQL, connect

LOGIN_ROLES = ["monitor", "operator", "owner", "producer", "support", "sweeper", "worker"]

LIKE_AURORA = """
create role rds_superuser nologin;
create role rds_iam nologin;
create role master login createrole createdb;
grant rds_superuser to master;
grant rds_iam to master with admin option;
"""


@pytest.fixture(scope="module")
def aurora() -> Iterator[EmbeddedPostgres]:
    """A server with the roles that Aurora has, bootstrapped by its master in the database `app`."""
    with tempfile.TemporaryDirectory(prefix="stopline-") as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedPostgres(Path(folder) / "pg", durable=False)
        server.start()
        try:
            with connect(server, "postgres") as admin:
                admin.execute(LIKE_AURORA)
            with connect(server, "postgres", "master") as master:
                master.execute("create database app")
            with connect(server, "app", "master") as master:
                bootstrap(master, SQL)
            yield server
        finally:
            server.destroy()


def rows(server: EmbeddedPostgres, query: str) -> list[tuple[Any, ...]]:
    with connect(server, "app") as admin:
        return admin.execute(query).fetchall()


def test_the_login_roles_can_log_in_and_use_iam_and_the_sources_owner_can_not(aurora: EmbeddedPostgres) -> None:
    found = rows(
        aurora,
        "select replace(rolname, 'stopline_', ''), rolcanlogin, pg_has_role(oid, 'rds_iam', 'member'), rolsuper,"
        " rolcreaterole from pg_roles where rolname like 'stopline%' order by rolname",
    )
    logins = [(role, True, True, False, False) for role in LOGIN_ROLES]
    assert found == sorted([*logins, ("source", False, False, False, False)])


def test_the_owner_may_become_the_sources_owner_and_is_no_member_of_a_login_role(aurora: EmbeddedPostgres) -> None:
    memberships = rows(
        aurora,
        "select roleid::regrole::text from pg_auth_members where member = 'stopline_owner'::regrole order by 1",
    )
    assert memberships == [("rds_iam",), ("stopline_source",)]


def test_the_master_keeps_no_power_over_the_queue(aurora: EmbeddedPostgres) -> None:
    (found,) = rows(
        aurora,
        "select pg_has_role('master', 'stopline_owner', 'usage'), has_schema_privilege('master', 'stopline', 'create')",
    )
    assert found == (False, False)


def test_bootstrap_a_second_time_changes_nothing(aurora: EmbeddedPostgres) -> None:
    state = (
        "select jsonb_build_array("
        " (select jsonb_agg(to_jsonb(r) - 'oid' order by r.rolname) from pg_roles r),"
        " (select jsonb_agg(to_jsonb(m) - 'oid' order by m.roleid, m.member, m.grantor) from pg_auth_members m),"
        " (select jsonb_agg(to_jsonb(s) order by s.setrole) from pg_db_role_setting s),"
        " (select jsonb_agg(to_jsonb(n) order by n.oid) from pg_namespace n where nspname like 'stopline%'))"
    )
    before = rows(aurora, state)
    with connect(aurora, "app", "master") as master:
        bootstrap(master, SQL)
    assert rows(aurora, state) == before


def test_a_migration_by_the_owner_installs_a_clock_that_no_setting_moves(aurora: EmbeddedPostgres) -> None:
    with connect(aurora, "app", "stopline_owner") as owner:
        migrate(owner, SQL, {}, {}, identity="prod")
    ((body,),) = rows(aurora, "select prosrc from pg_proc where oid = 'stopline.clock()'::regprocedure")
    assert body.strip() == "select pg_catalog.clock_timestamp()"


def test_the_oldest_transaction_is_unknown_and_not_zero_without_the_right_to_see_it(aurora: EmbeddedPostgres) -> None:
    """MO-03, MO-04: a figure that could not be read is not sent as 0; every other figure of the reading is a number."""
    with connect(aurora, "app", "stopline_owner") as owner:
        migrate(owner, SQL, {}, {}, identity="prod")
    with connect(aurora, "app", "stopline_monitor") as monitor:
        ((health,),) = monitor.execute("select stopline.health() -> 'totals'").fetchall()
    assert health.pop("OldestTransactionAge") is None
    assert set(health.values()) == {0}


def test_the_movable_clock_is_refused_on_aurora(aurora: EmbeddedPostgres) -> None:
    with connect(aurora, "postgres", "master") as master:
        master.execute("create database moved")
    with connect(aurora, "moved", "master") as master:
        bootstrap(master, SQL, local_clock=True)
    with (
        connect(aurora, "moved", "stopline_owner") as owner,
        pytest.raises(MigrationError, match=r"movable clock.*drop that schema"),
    ):
        migrate(owner, SQL, {}, {}, identity="prod")
    with connect(aurora, "moved") as admin:
        assert admin.execute("select to_regclass('stopline.job')").fetchone() == (None,)


def test_a_migration_before_the_bootstrap_says_what_to_run(aurora: EmbeddedPostgres) -> None:
    with (
        connect(aurora, "postgres", "stopline_owner") as owner,
        pytest.raises(MigrationError, match=r"schema stopline does not exist; run sql/bootstrap\.sql"),
    ):
        migrate(owner, SQL, {}, {}, identity="prod")


def test_a_migration_by_another_role_is_refused_naming_the_owner(aurora: EmbeddedPostgres) -> None:
    with connect(aurora, "app") as admin, pytest.raises(MigrationError, match="as postgres; connect as stopline_owner"):
        migrate(admin, SQL, {}, {}, identity="prod")
