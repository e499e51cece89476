"""The one connection: what it asks for, what it survives, and what it never says."""

import psycopg
import pytest

from stopline.errors import InfrastructureError
from stopline.store.connection import Session, Target, connect
from tests.support.database import Database

SECRETS = ["Sup3r Secret!", "Sup3r@Secret/x", "S%zz3cret"]


def test_nothing_is_asked_for_that_a_proxy_refuses(db: Database) -> None:
    """CO-03: no start-up options; the limits are the role's own."""
    target = db.target()
    assert "options" not in target.conninfo("token")
    conn = connect(target)
    settings = {
        name: conn.execute(f"show {name}").fetchone()
        for name in ("statement_timeout", "lock_timeout", "idle_in_transaction_session_timeout")
    }
    assert settings == {
        "statement_timeout": ("10s",),
        "lock_timeout": ("5s",),
        "idle_in_transaction_session_timeout": ("1min",),
    }
    conn.close()


def test_no_statement_is_ever_prepared_by_name(db: Database) -> None:
    """CO-05: behind a transaction pooler a prepared name meets another backend."""
    session = db.session()
    for _ in range(8):
        session.rows("select %s::int", (1,))
    ((count,),) = session.rows("select count(*) from pg_prepared_statements")
    assert count == 0


@pytest.mark.parametrize("secret", SECRETS)
def test_no_fragment_of_a_password_is_in_a_connection_error(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """CO-10: the driver echoes parts of a connection string that it cannot parse; ours go in as keywords."""
    monkeypatch.setattr("stopline.store.connection.auth_token", lambda *_: secret)
    target = Target("127.0.0.1", 1, "db", "stopline_worker", "iam", "eu-central-1", "/nonexistent.pem")
    with pytest.raises(InfrastructureError) as refused:
        connect(target)
    shown = f"{refused.value!r} {refused.value} {refused.value.__cause__!r} {refused.value.__context__!r}"
    for fragment in (secret, secret.split("@")[-1], secret.split(" ")[-1]):
        assert fragment not in shown
    assert "127.0.0.1:1" in shown


def test_a_session_notices_a_terminated_backend_and_answers_from_a_new_one(db: Database) -> None:
    """CO-07: the first use after a freeze finds the socket dead."""
    session = db.session()
    ((pid,),) = session.rows("select pg_backend_pid()")
    db.admin.execute("select pg_terminate_backend(%s)", [pid])
    ((other,),) = session.rows("select pg_backend_pid()")
    assert (other != pid, session.reconnects) == (True, 1)


def test_a_read_only_node_is_left_for_the_writer(db: Database) -> None:
    """CO-01: after a failover the old connection is alive and refuses to write, with `closed` still false."""
    db.policy()
    session = db.session()
    session.rows("select set_config('default_transaction_read_only', 'on', false)")
    ((answer,),) = session.rows("select stopline.tick('work')")
    assert (answer["status"], session.reconnects) == ("empty", 1)


def test_no_transaction_stays_open_between_calls(db: Database) -> None:
    """CO-02: an open one would freeze the time that due rows are compared with."""
    session = db.session()
    ((pid,),) = session.rows("select pg_backend_pid()")
    (row,) = db.rows("select state from pg_stat_activity where pid = %s", pid)
    assert row["state"] == "idle"


def test_an_error_in_one_call_leaves_nothing_for_the_next(db: Database) -> None:
    """CO-12: no aborted transaction is left behind."""
    session = db.session()
    with pytest.raises(psycopg.errors.DivisionByZero):
        session.rows("select 1 / 0")
    assert session.rows("select 1") == [(1,)]
    assert session.reconnects == 0


def test_an_unreachable_database_is_named_with_the_role_that_tried() -> None:
    session = Session(Target("127.0.0.1", 1, "jobs", "stopline_worker"))
    with pytest.raises(InfrastructureError, match=r"cannot connect to database jobs at 127.0.0.1:1 as stopline_worker"):
        session.rows("select 1")
