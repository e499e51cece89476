"""The migration runner: forward only, one at a time, and the same for the migrator Lambda, the CLI and the tests.

Order: migrations, engine and grants, installation, sources, policies, lowered caps. Each step commits by itself, so
that a run that dies is continued by the next.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import LiteralString

import psycopg
from psycopg import errors as pg

from stopline.migrate import ledger
from stopline.migrate.checks import check_database, only_run
from stopline.migrate.fault import MigrationError, describe
from stopline.migrate.files import Migration, SqlFiles, checksum, read_sql_files
from stopline.migrate.source import wrap_source
from stopline.migrate.steps import Steps, run_text
from stopline.policy.model import Policy

__all__ = ["MigrationError", "Report", "migrate"]

_CAP_BATCH = 1000
_NOT_YET_THERE = (pg.UndefinedTable, pg.InvalidSchemaName, pg.UndefinedColumn, pg.InsufficientPrivilege)


@dataclass(slots=True)
class Report:
    """What a run did. `lines` are for people, in order; `sql` is what a dry run would have executed."""

    lines: list[str] = field(default_factory=list)
    sql: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    schema_version: int = 0

    @property
    def changed(self) -> bool:
        return bool(self.lines)


def migrate(
    conn: psycopg.Connection,
    sql_dir: Path,
    policies: Mapping[str, Policy],
    sources: Mapping[str, str],
    *,
    identity: str,
    local_clock: bool = False,
    dry_run: bool = False,
    actor: str = "migrator",
    lock_wait_seconds: float = 600,
) -> Report:
    """Bring the database behind `conn` (autocommit, as stopline_owner) to what the files, policies and sources say.

    `identity` names the deployment that this database serves; a database that has one keeps it. `lock_wait_seconds` is
    how long to wait for another run. With `dry_run` nothing is written and `report.sql` holds the statements.
    Raises MigrationError; files that break a rule raise SqlFileError before anything runs.
    """
    files = read_sql_files(sql_dir)
    check_database(conn)
    run = _Run(conn, files, actor, local_clock, dry_run)
    if dry_run:
        run.all(policies, sources, identity)
        return run.report
    with only_run(conn, lock_wait_seconds):
        run.all(policies, sources, identity)
    return run.report


@dataclass(slots=True)
class _Run:
    conn: psycopg.Connection
    files: SqlFiles
    actor: str
    local_clock: bool
    dry_run: bool
    report: Report = field(default_factory=Report)

    @property
    def steps(self) -> Steps:
        return Steps(self.conn)

    def all(self, policies: Mapping[str, Policy], sources: Mapping[str, str], identity: str) -> None:
        applied = ledger.read(self.conn)
        newest = max((line.version for line in applied.values() if line.version), default=0)
        self.report.schema_version = max(newest, self.files.newest)
        if newest > self.files.newest:
            self.report.lines.append(
                f"schema is at {newest:04d}, newer than {self.files.newest:04d} of this code: "
                "schema, engine and sources left alone"
            )
        else:
            self._migrations(applied)
            self._engine(applied)
            self._installation(identity)
            self._sources(applied, sources)
        self._policies(policies)

    def _migrations(self, applied: dict[str, ledger.Applied]) -> None:
        if not applied:
            self._execute("schema_migration", ledger.TABLE)
        names = {line.version: line.name for line in applied.values()}
        for migration in self.files.migrations:
            line = applied.get(migration.name)
            if line is None and migration.version in names:
                raise MigrationError(
                    f"sql/migrations/{migration.name}.sql: version {migration.version:04d} was applied as "
                    f"{names[migration.version]}; restore that file and give this one the next number"
                )
            if line is None:
                self._apply(migration)
            elif line.checksum != migration.checksum:
                raise MigrationError(
                    f"sql/migrations/{migration.name}.sql was changed after it had been applied; "
                    "restore the file and write the change as a new migration"
                )

    def _apply(self, migration: Migration) -> None:
        label = f"migrations/{migration.name}"

        def step() -> None:
            run_text(self.conn, f"set local search_path = stopline, pg_temp;\n{migration.text}")
            ledger.record(self.conn, migration.name, migration.version, migration.checksum)

        if self.dry_run:
            self.report.sql.append(f"-- {label}\n{migration.text}")
        elif migration.outside_transaction:
            self._apply_outside(migration)
        else:
            self.steps.in_transaction(label, step)
        self.report.lines.append(f"applied {label}")

    def _apply_outside(self, migration: Migration) -> None:
        """An index build that died leaves an invalid index of its name behind, which `if not exists` would keep."""

        def step() -> None:
            dead = self.conn.execute(
                "select i.indexrelid::regclass::text from pg_index i join pg_class c on c.oid = i.indexrelid "
                "where not i.indisvalid and c.relnamespace = 'stopline'::regnamespace"
            ).fetchall()
            for (index,) in dead:
                run_text(self.conn, f"drop index concurrently if exists {index}")
            self.conn.execute("set search_path = stopline, pg_temp")
            run_text(self.conn, migration.text)

        try:
            self.steps.retried(f"migrations/{migration.name}", step)
        finally:
            if not self.conn.closed:
                self.conn.execute("reset search_path")
        ledger.record(self.conn, migration.name, migration.version, migration.checksum)

    def _engine(self, applied: dict[str, ledger.Applied]) -> None:
        texts = self.files.engine_texts(local_clock=self.local_clock)
        digest = self.files.engine_digest(local_clock=self.local_clock)
        line = applied.get("engine")
        if line is not None and line.checksum == digest:
            return

        def step() -> None:
            for name, text in texts:
                try:
                    run_text(self.conn, text)
                except psycopg.Error as error:
                    error.add_note(name)
                    raise
            ledger.record(self.conn, "engine", None, digest)

        if self.dry_run:
            self.report.sql.extend(f"-- {name}\n{text}" for name, text in texts)
        else:
            self.steps.in_transaction("engine", step)
        self.report.lines.append("applied engine and grants")

    def _installation(self, identity: str) -> None:
        if self.dry_run and not ledger.read(self.conn):
            return
        found = self.conn.execute("select identity from stopline.installation order by number desc limit 1").fetchone()
        if found is not None:
            if found[0] != identity:
                if not self.dry_run:
                    noted: LiteralString = "select stopline.foreign_identity(%s, %s)"
                    self._execute("foreign identity", noted, (identity, self.actor))
                self.report.warnings.append(
                    f"this database belongs to {found[0]!r}, not to {identity!r}: "
                    "claims are refused until `stopline adopt`"
                )
            return
        self._execute(
            "installation",
            "insert into stopline.installation (identity, first_job, adopted_at, adopted_by, reason) "
            "values (%s, 1, stopline.clock(), %s, 'first migration')",
            (identity, self.actor),
        )
        self.report.lines.append(f"installation named {identity!r}")

    def _sources(self, applied: dict[str, ledger.Applied], sources: Mapping[str, str]) -> None:
        for kind, source in sorted(sources.items()):
            name, text = f"source/{kind}", wrap_source(kind, source)
            line = applied.get(name)
            if line is None or line.checksum != checksum(text):
                self._wrap(kind, name, text)
        for name in sorted(applied):
            kind = name.removeprefix("source/")
            if name != kind and kind not in sources:
                self._source_step(name, f"drop function if exists stopline_source.{kind}(integer, boolean)", None)
                self.report.lines.append(f"dropped source of {kind}")

    def _wrap(self, kind: str, name: str, text: str) -> None:
        statements = (
            f"{text};\nrevoke all on function stopline_source.{kind}(integer, boolean) from public;\n"
            f"grant execute on function stopline_source.{kind}(integer, boolean) to stopline_owner"
        )
        try:
            self._source_step(name, statements, checksum(text))
        except _NOT_YET_THERE as error:
            # The application's own tables may come after Stopline: keep the source, and say what is missing.
            # Without its checksum the next deploy wraps it again.
            self._source_step(name, f"set local check_function_bodies = off;\n{statements}", "")
            self.report.warnings.append(
                f"source.sql of {kind}: {describe(error)}; ticks report it until that is mended"
            )
        self.report.lines.append(f"wrapped source of {kind}")

    def _source_step(self, name: str, statements: str, digest: str | None) -> None:
        if self.dry_run:
            self.report.sql.append(f"-- {name}\n{statements};")
            return

        def step() -> None:
            self.conn.execute("set local role stopline_source")
            run_text(self.conn, statements)
            self.conn.execute("set local role stopline_owner")
            if digest is None:
                ledger.forget(self.conn, name)
            else:
                ledger.record(self.conn, name, None, digest)

        self.steps.in_transaction(name, step, passed_on=_NOT_YET_THERE)

    def _policies(self, policies: Mapping[str, Policy]) -> None:
        rows = json.dumps([{"name": name, **policy.to_row()} for name, policy in sorted(policies.items())])
        if self.dry_run:
            quoted = rows.replace("'", "''")
            self.report.sql.append(f"-- policies\nselect * from stopline.sync_policy('{quoted}', '{self.actor}');")
            return

        def step() -> None:
            changes = self.conn.execute(
                "select kind, change from stopline.sync_policy(%s::jsonb, %s)", (rows, self.actor)
            ).fetchall()
            self.report.lines.extend(f"policy of {kind} {change}" for kind, change in changes)

        self.steps.in_transaction("policies", step)
        for kind in sorted(policies):
            self._lower_caps(kind)

    def _lower_caps(self, kind: str) -> None:
        lowered = 0
        batch = _CAP_BATCH

        def step() -> None:
            nonlocal batch
            batch = _lower_batch(self.conn, kind)

        while batch == _CAP_BATCH:
            self.steps.retried(f"caps of {kind}", step)
            lowered += batch
        if lowered:
            self.report.lines.append(f"cap of {kind} lowered on {lowered} open jobs")

    def _execute(self, label: str, statement: LiteralString, params: tuple[object, ...] = ()) -> None:
        if self.dry_run:
            self.report.sql.append(f"-- {label}\n{statement};")
        else:
            self.steps.in_transaction(label, lambda: self.conn.execute(statement, params))


def _lower_batch(conn: psycopg.Connection, kind: str) -> int:
    row = conn.execute("select stopline.lower_caps(%s, %s)", (kind, _CAP_BATCH)).fetchone()
    assert row is not None
    return int(row[0])
