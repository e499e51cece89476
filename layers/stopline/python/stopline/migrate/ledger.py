"""`schema_migration`: what was applied to a database, with checksums."""

from dataclasses import dataclass
from typing import LiteralString

import psycopg

TABLE: LiteralString = """
create table if not exists stopline.schema_migration (
  name        text primary key,
  version     integer unique,
  checksum    text not null,
  applied_at  timestamptz not null default now(),
  constraint instant_is_between_2000_and_9999 check (
    applied_at >= timestamptz '2000-01-01 00:00:00+00' and applied_at < timestamptz '9999-12-31 00:00:00+00')
)"""


@dataclass(frozen=True, slots=True)
class Applied:
    """One line of the ledger. `version` is None for parts that are re-applied when they change."""

    name: str
    version: int | None
    checksum: str


def read(conn: psycopg.Connection) -> dict[str, Applied]:
    """The ledger by name; empty on a database that was never migrated."""
    if conn.execute("select to_regclass('stopline.schema_migration')").fetchone() == (None,):
        return {}
    rows = conn.execute("select name, version, checksum from stopline.schema_migration").fetchall()
    return {name: Applied(name, version, checksum) for name, version, checksum in rows}


def record(conn: psycopg.Connection, name: str, version: int | None, checksum: str) -> None:
    """Note that `name` was applied. A part that is re-applied replaces its line."""
    conn.execute(
        "insert into stopline.schema_migration (name, version, checksum) values (%s, %s, %s) "
        "on conflict (name) do update set checksum = excluded.checksum, applied_at = now()",
        (name, version, checksum),
    )


def forget(conn: psycopg.Connection, name: str) -> None:
    """Drop the line of a part that no longer exists."""
    conn.execute("delete from stopline.schema_migration where name = %s", (name,))
