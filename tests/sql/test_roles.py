"""Each login role can do what its process does, and nothing else."""

from pathlib import Path
from typing import LiteralString

import psycopg
import pytest
from psycopg import errors as pg

from tests.support.database import Database
from tests.support.deploys import SqlCopy, deploy
from tests.support.poller import Poller

MAY_CALL = {
    "stopline_producer": {"enqueue", "enqueue_many"},
    "stopline_worker": {
        "tick",
        "claim",
        "succeed",
        "fail",
        "release",
        "start_effect",
        "count_step",
        "save_checkpoint",
        "due_checks",
        "record_check",
    },
    "stopline_sweeper": {"sweep", "purge"},
    "stopline_monitor": {"health", "reasons"},
    "stopline_operator": {
        "health",
        "reasons",
        "list_jobs",
        "show_job",
        "list_kinds",
        "read_clock",
        "exposure",
        "doctor",
        "cancel",
        "replay",
        "reconcile",
        "acknowledge",
        "release_key",
        "pause_kind",
        "resume_kind",
    },
    "stopline_support": set(),
    "stopline_source": {"holds_key"},
}
LOGIN_ROLES = sorted(MAY_CALL.keys() - {"stopline_source"})
HIDDEN = {"payload", "result", "checkpoint", "error", "last_error", "late_error", "before", "after", "reason"}


def test_a_role_can_call_exactly_its_own_functions(db: Database) -> None:
    for role, functions in MAY_CALL.items():
        callable_ = db.rows(
            "select p.proname as name from pg_proc p where p.pronamespace = 'stopline'::regnamespace"
            " and has_function_privilege(%s, p.oid, 'execute')",
            role,
        )
        assert {row["name"] for row in callable_} == functions, role


def test_a_role_has_no_right_on_any_table_view_or_sequence_but_support_on_its_views(db: Database) -> None:
    for role in MAY_CALL:
        reached = db.rows(
            """
            select c.relname as name
              from (select %s::text as role) r,
                   pg_class c
             where c.relnamespace = any (array['stopline', 'stopline_local']::regnamespace[])
               and c.relkind in ('r', 'v', 'S', 'p')
               and case when c.relkind = 'S' then has_sequence_privilege(r.role, c.oid, 'usage, select, update')
                     else has_table_privilege(r.role, c.oid, 'select, insert, update, delete, truncate, trigger')
                          or has_any_column_privilege(r.role, c.oid, 'select, insert, update, references') end
            """,
            role,
        )
        views = {"support_job", "support_attempt", "support_event"} if role == "stopline_support" else set()
        assert {row["name"] for row in reached} == views, role


def test_support_may_only_read_its_views(db: Database) -> None:
    rights = db.rows(
        "select table_name, privilege_type from information_schema.role_table_grants where grantee = 'stopline_support'"
    )
    assert {row["privilege_type"] for row in rights} == {"SELECT"}


def test_support_reads_jobs_and_attempts_without_payloads_or_error_texts(db: Database) -> None:
    db.policy()
    db.enqueue(payload={"iban": "DE89 3704"})
    poller = Poller(db)
    poller.fail(poller.one(), error="refused for IBAN DE89 3704")
    support = db.connect("stopline_support")
    for view in ("support_job", "support_attempt", "support_event"):
        cursor = support.execute(f"select * from stopline.{view}")
        assert HIDDEN.isdisjoint(column.name for column in cursor.description or ())
        assert "DE89" not in str(cursor.fetchall())
    for table in ("job", "job_data", "attempt", "event"):
        with pytest.raises(pg.InsufficientPrivilege):
            support.execute(f"select * from stopline.{table}")


def test_public_has_no_right_in_the_schemas(db: Database) -> None:
    """A function without an access list is everybody's, so each must have one, and none may name PUBLIC."""
    open_to_all = db.rows(
        """
        with mine as (select oid from pg_namespace where nspname in ('stopline', 'stopline_source', 'stopline_local'))
        select p.oid::regprocedure::text as name
          from pg_proc p
         where p.pronamespace in (select oid from mine)
           and (p.proacl is null or exists (select from aclexplode(p.proacl) a where a.grantee = 0))
        union all
        select c.oid::regclass::text
          from pg_class c, aclexplode(c.relacl) a
         where c.relnamespace in (select oid from mine) and a.grantee = 0
        union all
        select n.nspname
          from pg_namespace n, aclexplode(n.nspacl) a
         where n.oid in (select oid from mine) and a.grantee = 0
        """
    )
    assert open_to_all == []


def test_a_function_that_runs_with_its_owners_rights_has_a_pinned_search_path(db: Database) -> None:
    deploy(db, sources={"work": "select 'k' as key, '{}'::jsonb as payload"})
    functions = db.rows(
        """
        select p.oid::regprocedure::text as name, p.pronamespace::regnamespace::text as schema, p.proconfig as settings
          from pg_proc p
         where p.prosecdef
           and p.pronamespace = any (array['stopline', 'stopline_source']::regnamespace[])
        """
    )
    assert len(functions) > 15
    pinned = {
        "stopline": "search_path=pg_catalog, stopline, pg_temp",
        "stopline_source": "search_path=pg_catalog, pg_temp",
    }
    assert [row["name"] for row in functions if pinned[row["schema"]] not in (row["settings"] or ())] == []


def test_every_function_that_a_role_may_call_runs_with_its_owners_rights(db: Database) -> None:
    wanted = {name for functions in MAY_CALL.values() for name in functions}
    rows = db.rows(
        "select proname as name from pg_proc where pronamespace = 'stopline'::regnamespace and prosecdef"
        " and proowner = 'stopline_owner'::regrole"
    )
    assert wanted <= {row["name"] for row in rows}


def test_the_owner_owns_everything_but_the_wrapped_sources(db: Database) -> None:
    deploy(db, sources={"work": "select 'k' as key, '{}'::jsonb as payload"})
    owners = db.rows(
        """
        with mine as (select unnest(array['stopline', 'stopline_source']::regnamespace[]) as schema)
        select 'schema' as what, oid::regnamespace::text as name, nspowner::regrole::text as owner
          from pg_namespace where oid in (select schema from mine)
        union all
        select 'relation', oid::regclass::text, relowner::regrole::text
          from pg_class where relnamespace in (select schema from mine)
        union all
        select 'function', oid::regprocedure::text, proowner::regrole::text
          from pg_proc where pronamespace in (select schema from mine)
        union all
        select 'type', oid::regtype::text, typowner::regrole::text
          from pg_type where typnamespace in (select schema from mine)
        """
    )
    others = {(row["what"], row["name"], row["owner"]) for row in owners if row["owner"] != "stopline_owner"}
    assert others == {
        ("schema", "stopline_source", "stopline_source"),
        ("function", "stopline_source.work(integer,boolean)", "stopline_source"),
    }


@pytest.mark.parametrize(
    "attack",
    [
        "update stopline.job set max_attempts = 1000",
        "update stopline.kind set max_attempts = 1000",
        "insert into stopline.event (at, action, actor) values (now(), 'replayed', 'nobody')",
        "select * from stopline.sync_policy('[]', 'worker')",
        "select stopline.lower_caps('work')",
        "select * from stopline.enqueue('work', '{}')",
        "select stopline.settle('work', current_date, -100)",
        "update stopline_local.clock set shift = '1 day'",
        "set role stopline_owner",
        "set role stopline_source",
        "set session_replication_role = replica",
        "create function stopline.clock2() returns int language sql as 'select 1'",
        "create table stopline_source.work (n int)",
    ],
)
def test_a_worker_cannot_raise_its_own_cap(db: Database, attack: LiteralString) -> None:
    db.policy()
    db.enqueue()
    with pytest.raises(psycopg.Error) as caught:
        db.connect("stopline_worker").execute(attack)
    assert caught.value.sqlstate == "42501"


def test_a_worker_cannot_put_a_table_of_its_own_in_place_of_the_policy(db: Database) -> None:
    """The functions look into pg_temp last, whatever the caller's search path says."""
    db.policy(max_attempts=1)
    db.enqueue()
    worker = db.connect()
    worker.execute("create temporary table kind (name text, max_attempts integer)")
    worker.execute("create temporary table job (id bigint)")
    worker.execute("set search_path = pg_temp, public")
    call: LiteralString = (
        "select status, attempts_left from stopline.claim('work', 'w1', gen_random_uuid(), 1, 900, 'test')"
    )
    assert worker.execute(call).fetchall() == [("ok", 0)]


def test_a_worker_cannot_give_money_back_to_the_budget(db: Database) -> None:
    """A reported cost that is no amount of money keeps the reservation, and the finish commits all the same."""
    db.policy(per_attempt_usd="1", daily_budget_usd="3")
    worker = db.connect()
    for cost in ("-100", "NaN", "10000000"):
        db.enqueue()
        job = Poller(db).one()
        call: LiteralString = (
            "select answer from stopline.succeed(array[%s::bigint], array[%s::bigint], '{null}', array[%s::numeric])"
        )
        assert worker.execute(call, [job.id, job.fence, cost]).fetchall() == [("recorded",)]
    db.enqueue()
    assert Poller(db).claim().status == "budget"
    assert [float(row["cost_usd"]) for row in db.rows("select cost_usd from stopline.attempt")] == [1, 1, 1]


def test_a_function_that_is_dropped_and_made_again_has_its_grants_after_the_engine(
    db: Database, tmp_path: Path
) -> None:
    """DROP and CREATE gives a function to everybody; the engine takes it back in the same transaction."""
    copy = SqlCopy(tmp_path)
    copy.engine("39_again", "drop function stopline.sweep(integer);")
    deploy(db, copy.path)
    assert db.connect("stopline_sweeper").execute("select count(*) from stopline.sweep(1)").fetchone() == (13,)
    for role in ("stopline_worker", "stopline_monitor"):
        with pytest.raises(pg.InsufficientPrivilege):
            db.connect(role).execute("select * from stopline.sweep(1)")


def test_login_roles_bound_their_statements_locks_and_idle_transactions(db: Database) -> None:
    """CL-09, CO-03: the limits are set on the roles, because a proxy refuses them as start-up options."""
    for role in ("stopline_worker", "stopline_sweeper", "stopline_monitor", "stopline_operator", "stopline_support"):
        conn = db.connect(role)
        for setting in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout"):
            assert conn.execute("select current_setting(%s)", [setting]).fetchone() != ("0",), (role, setting)
        assert conn.execute("select current_setting('default_transaction_isolation')").fetchone() == ("read committed",)
