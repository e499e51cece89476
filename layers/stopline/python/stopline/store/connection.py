"""One connection per execution environment: lazy, autocommit, dropped and made again after an infrastructure error."""

import random
import time
from collections.abc import Callable
from typing import Any, LiteralString, TypeVar

import psycopg

from stopline.errors import InfrastructureError
from stopline.errortext import clean
from stopline.store.faults import engine_error, has_waited, is_contention, is_infrastructure
from stopline.store.iam import auth_token
from stopline.store.target import Target

__all__ = ["Session", "Target", "connect"]

T = TypeVar("T")
_CONTENTION_TRIES = 6
_CONTENTION_PAUSE_SECONDS = 0.02


def connect(target: Target, *, autocommit: bool = True) -> psycopg.Connection:
    """Open a connection to `target`. Raises InfrastructureError without any part of a password in its text.

    Prepared statements are off: behind a proxy their names meet another backend.
    """
    token = auth_token(target.host, target.port, target.user, target.region or "") if target.auth == "iam" else None
    try:
        return psycopg.connect(**target.conninfo(token), autocommit=autocommit, prepare_threshold=None)
    except psycopg.Error as error:
        text = clean(str(error) if token is None else str(error).replace(token, "[redacted]"))
        where = f"{target.dbname} at {target.host}:{target.port} as {target.user}"
    raise InfrastructureError(f"cannot connect to database {where}: {text}{_what_to_do(text, target)}")


class Session:
    """The connection that one supervisor owns. Not for a child process: it would close its parent's session.

    `reconnects` counts the connections that were dropped and replaced.
    """

    def __init__(self, target: Target) -> None:
        self.target = target
        self.reconnects = 0
        self._conn: psycopg.Connection | None = None

    def rows(self, statement: LiteralString, params: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        """Call one function and return its rows.

        The call is repeated once on a new connection after an infrastructure error, and a few times on the same one
        after lost races, so every statement that goes through here must be safe to repeat. Raises InfrastructureError
        when that does not help or the call has waited for a whole timeout, and the engine's refusals as InvalidInput,
        Refused or LeaseLost.
        """
        return self._safely(lambda conn: conn.execute(statement, params).fetchall())

    def fileno(self) -> int | None:
        """The socket's descriptor, for a child to close; None while not connected."""
        return None if self._conn is None or self._conn.closed else self._conn.fileno()

    def close(self) -> None:
        """Close the connection if there is one. The next call opens another."""
        conn, self._conn = self._conn, None
        if conn is not None:
            conn.close()

    def _safely(self, call: Callable[[psycopg.Connection], T]) -> T:
        fresh = False
        contended = 0
        while True:
            try:
                return call(self._connection())
            except psycopg.Error as error:
                if is_contention(error) and contended < _CONTENTION_TRIES:
                    contended += 1
                    time.sleep(random.uniform(0, _CONTENTION_PAUSE_SECONDS * 2**contended))
                    continue
                if not is_infrastructure(error):
                    raise engine_error(error) or error from error
                if has_waited(error):
                    raise InfrastructureError(_describe(error)) from None
                self._drop()
                if fresh or is_contention(error):
                    raise InfrastructureError(_describe(error)) from None
                fresh = True

    def _connection(self) -> psycopg.Connection:
        if self._conn is None or self._conn.closed:
            self._conn = connect(self.target)
        return self._conn

    def _drop(self) -> None:
        self.reconnects += 1
        self.close()


def _what_to_do(text: str, target: Target) -> str:
    """What a refused certificate asks for; an infrastructure error otherwise needs no advice but to look there."""
    if "certificate verify failed" in text:
        return (
            f". Fix: no root in {target.sslrootcert} signed it; name a file that has it in STOPLINE_DB_SSLROOTCERT "
            "(docs/security.md)"
        )
    if "does not match host name" in text:
        return f". Fix: use the name that the database's certificate was made for, not {target.host}"
    return ""


def _describe(error: psycopg.Error) -> str:
    return f"{error.sqlstate or 'no SQLSTATE'} {clean(str(error).strip() or type(error).__name__)}"
