"""Whether a database is what the code beside it believes. Reads only."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import psycopg

from stopline.migrate import ledger
from stopline.migrate.fault import describe
from stopline.migrate.files import SqlFiles, checksum, read_sql_files
from stopline.migrate.findings import Finding, fail, ok, warn
from stopline.migrate.source import wrap_source
from stopline.policy.model import Policy

_CLOCK_SECONDS = 5.0
"""Tokens and schedules tolerate minutes; a difference of seconds already says that no time service runs somewhere."""

_MIGRATE = "run the migrator (`stopline migrate`, or the next deploy)"


def diagnose(
    conn: psycopg.Connection,
    sql_dir: Path,
    policies: Mapping[str, Policy],
    sources: Mapping[str, str],
    *,
    identity: str,
) -> list[Finding]:
    """Every check of the database behind `conn` (autocommit, as stopline_owner) against these files and policies.

    A check that cannot be made is a finding of its own; only a lost connection raises psycopg.Error.
    """
    if conn.execute("select to_regclass('stopline.schema_migration')").fetchone() == (None,):
        return [fail("schema", "version", "this database was never migrated", _MIGRATE)]
    checks = _Checks(conn, read_sql_files(sql_dir), ledger.read(conn))
    return [
        *checks.guarded("schema", checks.schema),
        *checks.guarded("policies", lambda: checks.policies(policies)),
        *checks.guarded("sources", lambda: checks.sources(sources)),
        *checks.guarded("installation", lambda: checks.identity(identity)),
        *checks.guarded("clock", checks.clock),
        *checks.guarded("database", checks.database),
    ]


@dataclass(frozen=True, slots=True)
class _Checks:
    conn: psycopg.Connection
    files: SqlFiles
    applied: dict[str, ledger.Applied]

    def guarded(self, part: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
        """The check's findings, or that it could not be made."""
        try:
            return list(check())
        except psycopg.Error as error:
            if self.conn.closed:
                raise
            return [fail(part, "could be checked", f"{error.sqlstate} {describe(error)}", _MIGRATE)]

    @property
    def version(self) -> int:
        return max((line.version for line in self.applied.values() if line.version), default=0)

    def schema(self) -> Iterator[Finding]:
        """Versions, and whether what was applied is what lies in the files."""
        have, know = f"{self.version:04d}", f"{self.files.newest:04d}"
        if self.version < self.files.newest:
            yield fail("schema", "version", f"at {have}; this code needs {know}", _MIGRATE)
        elif self.version > self.files.newest:
            rolled = "an older release beside a newer schema works (docs/upgrade.md); deploy the newer one again"
            yield warn("schema", "version", f"at {have}, newer than {know} of this code", rolled)
        else:
            yield ok("schema", "version", f"at {have}, as this code")
        changed = [
            migration.name
            for migration in self.files.migrations
            if (line := self.applied.get(migration.name)) is not None and line.checksum != migration.checksum
        ]
        if changed:
            restore = "restore the released files, and write a change as a new migration"
            yield fail("schema", "migrations", f"changed after they were applied: {', '.join(changed)}", restore)
        else:
            yield ok("schema", "migrations", "as they were applied")
        engine = self.applied.get("engine")
        digests = {self.files.engine_digest(local_clock=local) for local in (False, True)}
        if engine is None or (engine.checksum not in digests and self.version <= self.files.newest):
            yield fail("schema", "engine", "functions and grants are not those of this code", _MIGRATE)
        elif engine.checksum not in digests:
            yield ok("schema", "engine", "newer than this code, with its schema")
        else:
            yield ok("schema", "engine", "functions and grants are those of this code")

    def policies(self, policies: Mapping[str, Policy]) -> Iterator[Finding]:
        """One line for each kind that differs, or one for all."""
        rows = json.dumps([{"name": name, **policy.to_row()} for name, policy in sorted(policies.items())])
        drifts = self.conn.execute(
            "select kind, drift from stopline.policy_drift(%s::jsonb) where drift is not null order by kind", (rows,)
        ).fetchall()
        for kind, drift in drifts:
            yield fail("policies", kind, drift, _MIGRATE)
        if not drifts:
            yield ok("policies", "in step", f"{len(policies)} kinds, as in the code")

    def sources(self, sources: Mapping[str, str]) -> Iterator[Finding]:
        """One line for each source that is not in force, or one for all."""
        late = "an ordinary tick reports what is missing; mend it and run the migrator"
        wrong = 0
        for kind, source in sorted(sources.items()):
            line = self.applied.get(f"source/{kind}")
            if line is not None and line.checksum == checksum(wrap_source(kind, source)):
                continue
            wrong += 1
            if line is not None and not line.checksum:
                yield warn("sources", kind, "was kept although the database refused it when it was wrapped", late)
            else:
                yield fail("sources", kind, "source.sql is not the one that is in force", _MIGRATE)
        if not wrong:
            yield ok("sources", "in step", f"{len(sources)} sources, as in the code")

    def identity(self, identity: str) -> Iterator[Finding]:
        """Whether pollers of this deployment may claim."""
        row = self.conn.execute("select identity from stopline.installation order by number desc limit 1").fetchone()
        if row == (identity,):
            yield ok("installation", "this deployment", f"claims as {identity}")
        else:
            fix = "if this is a restored copy that shall run, `stopline adopt`; docs/deploy.md, Restore"
            owner = "nobody" if row is None else row[0]
            yield fail("installation", "this deployment", f"claims as {identity}; the database is {owner}'s", fix)

    def clock(self) -> Iterator[Finding]:
        """How far the server's clock is from ours."""
        before = datetime.now(UTC)
        row = self.conn.execute("select clock_timestamp()").fetchone()
        after = datetime.now(UTC)
        assert row is not None
        apart = max((before - row[0]).total_seconds(), (row[0] - after).total_seconds(), 0.0)
        if apart > _CLOCK_SECONDS:
            fix = "see to the time service of whichever is wrong: deadlines and tokens are compared across them"
            yield warn("clock", "agreement", f"server and caller are {apart:.0f} s apart", fix)
        else:
            yield ok("clock", "agreement", "server and caller agree")

    def database(self) -> Iterator[Finding]:
        """What stopline.doctor() finds."""
        if self.conn.execute("select to_regprocedure('stopline.doctor()')").fetchone() == (None,):
            yield fail("database", "doctor", "the database has no function stopline.doctor()", _MIGRATE)
            return
        names = ("part", "name", "level", "found", "fix")
        for row in self.conn.execute("select part, name, level, found, fix from stopline.doctor()").fetchall():
            yield Finding.from_row(dict(zip(names, row, strict=True)))
