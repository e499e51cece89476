"""Roles and schemas, once, as the database's administrator."""

from pathlib import Path

import psycopg


def bootstrap(admin: psycopg.Connection, sql_dir: Path, *, local_clock: bool = False) -> None:
    """Run `bootstrap.sql`, and for `stopline local` and the tests what the movable clock needs. Harmless when repeated.

    `admin` is an autocommit connection of a superuser or a CREATEROLE master. Raises psycopg.Error.
    """
    _run(admin, sql_dir / "bootstrap.sql")
    if local_clock:
        _run(admin, sql_dir / "local" / "bootstrap.sql")


def _run(admin: psycopg.Connection, path: Path) -> None:
    admin.execute(path.read_text())
