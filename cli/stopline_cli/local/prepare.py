"""Makes a local database what a deploy makes of Aurora: bootstrapped, migrated, with the policies of its kinds."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from stopline.migrate.bootstrap import bootstrap
from stopline.migrate.runner import Report, migrate
from stopline.policy.model import Policy
from stopline_cli.local.folders import CHECKOUT
from stopline_cli.local.postgres import EmbeddedPostgres

SQL = CHECKOUT / "sql"
JOBS = CHECKOUT / "lambdas" / "jobs"
SAMPLES = CHECKOUT / "samples"
OWNER = "stopline_owner"

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(server: EmbeddedPostgres, dbname: str, role: str = "postgres") -> Connection:
    """An autocommit connection as `role`; the superuser's unless another is named."""
    conninfo = {**server.admin_conninfo(dbname), "user": role}
    return psycopg.connect(**conninfo, autocommit=True)  # type: ignore[arg-type]


def make_database(server: EmbeddedPostgres, dbname: str, sql_dir: Path = SQL) -> None:
    """Creates the database when it is missing, with Stopline's roles and schemas and the movable clock's table."""
    with connect(server, "postgres") as admin:
        if admin.execute("select from pg_database where datname = %s", [dbname]).fetchone() is None:
            admin.execute(sql.SQL("create database {}").format(sql.Identifier(dbname)))
    with connect(server, dbname) as admin:
        bootstrap(admin, sql_dir, local_clock=True)


def make_sample_application(server: EmbeddedPostgres, dbname: str) -> None:
    """Creates the tables, roles and grants of the sample application, which the shipped kinds' sources read."""
    with connect(server, dbname) as admin:
        admin.execute((SAMPLES / "schema.sql").read_bytes())


def load_samples(server: EmbeddedPostgres, dbname: str) -> dict[str, int]:
    """Loads the sample rows that are not there yet. Returns how many were added, by what they are."""
    added = {}
    with connect(server, dbname) as admin:
        admin.execute((SAMPLES / "load.sql").read_bytes())
        for what, schema in (("conversations", "support"), ("invoices", "billing")):
            rows = json.loads((SAMPLES / f"{what}.json").read_text(encoding="utf-8"))
            load = sql.SQL("select {}.load_samples(%s::jsonb)").format(sql.Identifier(schema))
            row = admin.execute(load, [json.dumps(rows)]).fetchone()
            added[what] = int(row[0]) if row else 0
    return added


def read_sources(kinds: Iterable[str]) -> dict[str, str]:
    """The text of source.sql of each of these kinds that has one."""
    files = {kind: JOBS / kind / "source.sql" for kind in kinds}
    return {kind: file.read_text(encoding="utf-8") for kind, file in files.items() if file.exists()}


def deploy(
    server: EmbeddedPostgres,
    dbname: str,
    policies: Mapping[str, Policy],
    *,
    identity: str,
    sql_dir: Path = SQL,
    dry_run: bool = False,
) -> Report:
    """Migrates the database as its owner and brings it the policies and their sources. A dry run only tells."""
    sources = read_sources(policies)
    with connect(server, dbname, OWNER) as owner:
        return migrate(owner, sql_dir, policies, sources, identity=identity, local_clock=True, dry_run=dry_run)
