"""What must hold before a migration may run, and the lock that keeps runs apart."""

from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
from psycopg import errors as pg

from stopline.migrate.fault import MigrationError

_LOCK_KEY = int.from_bytes(b"STOPLINE", "big")


def check_database(conn: psycopg.Connection) -> None:
    """Raises MigrationError unless `conn` is stopline_owner's, in autocommit mode, on a bootstrapped database."""
    if not conn.autocommit:
        raise MigrationError("the migrator's connection must be in autocommit mode: every step commits by itself")
    row = conn.execute(
        "select current_database(), current_user, to_regnamespace('stopline') is not null, "
        "to_regnamespace('stopline_local') is not null, exists (select from pg_roles where rolname = 'rds_superuser')"
    ).fetchone()
    assert row is not None
    database, user, has_schema, has_local_clock, is_aurora = row
    if not has_schema:
        raise MigrationError(
            f"database {database}: schema stopline does not exist; run sql/bootstrap.sql once as its administrator"
        )
    if user != "stopline_owner":
        raise MigrationError(
            f"database {database}: connected as {user}; connect as stopline_owner, who owns everything"
        )
    if has_local_clock and is_aurora:
        raise MigrationError(
            f"database {database}: it has the movable clock of `stopline local` (schema stopline_local), with which "
            "limits can be stepped over; drop that schema as its administrator and run again"
        )


@contextmanager
def only_run(conn: psycopg.Connection, wait_seconds: float) -> Iterator[None]:
    """Hold the one lock of all runs on this database. A second run waits for the first and then finds nothing to do."""
    conn.execute(f"set lock_timeout = {int(wait_seconds * 1000)}")
    try:
        conn.execute("select pg_advisory_lock(%s)", (_LOCK_KEY,))
    except pg.LockNotAvailable as error:
        raise MigrationError(
            f"55P03 another migration of this database did not end within {wait_seconds:g} s; wait and run again"
        ) from error
    finally:
        conn.execute("reset lock_timeout")
    try:
        yield
    finally:
        if not conn.closed:
            conn.execute("select pg_advisory_unlock(%s)", (_LOCK_KEY,))
