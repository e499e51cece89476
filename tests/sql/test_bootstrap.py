"""Bootstrap by an administrator who is no superuser, as on Aurora. Roles belong to a server, so this has its own.

It runs on the wheel's PostgreSQL and on the system's older one: rights over roles changed between them.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, LiteralString

import psycopg
import pytest

from stopline.migrate.bootstrap import bootstrap
from stopline.migrate.runner import MigrationError, migrate
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import SQL, connect
from tests.support.deploys import policies
from tests.support.system_postgres import needed_programs

LOGIN_ROLES = ["monitor", "operator", "owner", "producer", "support", "sweeper", "worker"]

LIKE_AURORA = """
create role rds_superuser nologin;
create role rds_iam nologin;
create role master login createrole createdb;
grant rds_superuser to master;
grant rds_iam to master with admin option;
"""


@pytest.fixture(scope="module", params=["newest", "oldest"])
def aurora(request: pytest.FixtureRequest) -> Iterator[EmbeddedPostgres]:
    """A server with the roles that Aurora has, bootstrapped by its master in the database `app`."""
    programs = needed_programs() if request.param == "oldest" else None
    with tempfile.TemporaryDirectory(prefix="stopline-") as folder:
        Path(folder).chmod(0o711)
        server = EmbeddedPostgres(Path(folder) / "pg", durable=False, programs=programs)
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
    # An older server lets a master grant the statistics too; a newer one wants an administrator of that role.
    assert [role for (role,) in memberships if role != "pg_read_all_stats"] == ["rds_iam", "stopline_source"]


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


def test_bootstrap_after_iam_was_switched_on_lets_the_login_roles_use_it(aurora: EmbeddedPostgres) -> None:
    with connect(aurora, "app") as admin:
        admin.execute("revoke rds_iam from stopline_worker")
    with connect(aurora, "app", "master") as master:
        bootstrap(master, SQL)
    assert rows(aurora, "select pg_has_role('stopline_worker', 'rds_iam', 'member')") == [(True,)]


def test_bootstrap_in_a_second_database_of_the_server_leaves_the_roles_as_they_are(aurora: EmbeddedPostgres) -> None:
    with connect(aurora, "postgres", "master") as master:
        master.execute("create database second")
    roles = "select rolname, oid from pg_roles where rolname like 'stopline%' order by 1"
    before = rows(aurora, roles)
    with connect(aurora, "second", "master") as master:
        bootstrap(master, SQL)
    assert rows(aurora, roles) == before
    with connect(aurora, "second", "stopline_owner") as owner:
        assert migrate(owner, SQL, {}, {}, identity="second").changed


def test_after_the_bootstrap_the_owner_alone_deploys_and_each_role_does_its_part(aurora: EmbeddedPostgres) -> None:
    """The master is needed once: tables, functions, grants, a source and a policy are the owner's work."""
    with connect(aurora, "postgres", "master") as master:
        master.execute("create database whole")
    with connect(aurora, "whole", "master") as master:
        bootstrap(master, SQL)
    source = {"work": "select 'a key' as key, '{}'::jsonb as payload"}
    with connect(aurora, "whole", "stopline_owner") as owner:
        migrate(owner, SQL, policies("work"), source, identity="prod")
    with connect(aurora, "whole", "stopline_worker") as worker:
        ((tick,),) = worker.execute("select stopline.tick('work')").fetchall()
        assert (tick["status"], tick["counts"]["created"], tick["note"]) == ("ok", 1, None)
        claim = "select status, key from stopline.claim('work', 'w1', gen_random_uuid(), 5, 900, 'prod')"
        assert worker.execute(claim).fetchall() == [("ok", "a key")]
    with connect(aurora, "whole", "stopline_sweeper") as sweeper:
        assert sweeper.execute("select count(*) from stopline.sweep(10)").fetchone() == (13,)
    with connect(aurora, "whole", "stopline_operator") as operator:
        assert operator.execute("select count(*) from stopline.list_jobs()").fetchone() == (1,)


@pytest.mark.parametrize(
    "attack",
    [
        "grant rds_iam to stopline_source",
        "alter role stopline_worker superuser",
        "grant stopline_worker to stopline_owner",
    ],
)
def test_the_owner_can_give_nobody_a_way_in(aurora: EmbeddedPostgres, attack: LiteralString) -> None:
    with connect(aurora, "app", "stopline_owner") as owner, pytest.raises(psycopg.Error) as refused:
        owner.execute(attack)
    assert refused.value.sqlstate in ("42501", "0LP01")


def test_a_migration_by_the_owner_installs_a_clock_that_no_setting_moves(aurora: EmbeddedPostgres) -> None:
    with connect(aurora, "app", "stopline_owner") as owner:
        migrate(owner, SQL, {}, {}, identity="prod")
    ((body,),) = rows(aurora, "select prosrc from pg_proc where oid = 'stopline.clock()'::regprocedure")
    assert body.strip() == "select pg_catalog.clock_timestamp()"


def test_the_oldest_transaction_is_unknown_and_not_zero_without_the_right_to_see_it(aurora: EmbeddedPostgres) -> None:
    """MO-03, MO-04: a figure that could not be read is not sent as 0; every other figure of the reading is a number."""
    with connect(aurora, "app", "stopline_owner") as owner:
        migrate(owner, SQL, {}, {}, identity="prod")
    with connect(aurora, "app") as admin:
        admin.execute("revoke pg_read_all_stats from stopline_owner")
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
