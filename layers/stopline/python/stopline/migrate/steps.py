"""How one step runs: in its own transaction, with a short wait for locks that is repeated."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import psycopg
from psycopg import errors as pg

from stopline.migrate.fault import MigrationError, describe

_LOCK_TIMEOUT_MS = 3000
_TRIES = 20
_LONGEST_PAUSE_SECONDS = 1.0
_RETRIED = (pg.LockNotAvailable, pg.DeadlockDetected, pg.SerializationFailure)

PassedOn = tuple[type[psycopg.Error], ...]


@dataclass(frozen=True, slots=True)
class Steps:
    """Runs steps on `conn`. A step waits for a lock only briefly and tries again: a long reader must not make every
    claim queue up behind an `alter table`."""

    conn: psycopg.Connection

    def in_transaction(self, label: str, step: Callable[[], object], *, passed_on: PassedOn = ()) -> None:
        """Run `step` whole or not at all. Raises MigrationError naming `label`; `passed_on` errors come through."""

        def whole() -> None:
            with self.conn.transaction():
                self.conn.execute(f"set local lock_timeout = {_LOCK_TIMEOUT_MS}")
                step()

        self.retried(label, whole, passed_on=passed_on)

    def retried(self, label: str, step: Callable[[], object], *, passed_on: PassedOn = ()) -> None:
        """Run `step` until it gets its locks. For steps that manage their own transactions."""
        for attempt in range(1, _TRIES + 1):
            try:
                step()
                return
            except _RETRIED as error:
                if attempt == _TRIES:
                    raise MigrationError(
                        f"{error.sqlstate} {label}: no lock after {_TRIES} tries of {_LOCK_TIMEOUT_MS} ms; look in "
                        "pg_stat_activity for a long transaction, end it, and run again"
                    ) from error
                time.sleep(min(0.1 * attempt, _LONGEST_PAUSE_SECONDS))
            except passed_on:
                raise
            except psycopg.Error as error:
                raise MigrationError(f"{error.sqlstate} {label}: {describe(error)}") from error


def run_text(conn: psycopg.Connection, text: str) -> None:
    """Send a file as it is: without parameters the driver sends several statements in one message."""
    conn.execute(text)
