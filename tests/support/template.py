"""The template database: bootstrapped and migrated once a run, by the same code that deploys."""

from pathlib import Path

import psycopg
from stopline.migrate.runner import bootstrap, migrate

from stopline_cli.local.folders import CHECKOUT
from stopline_cli.local.postgres import EmbeddedPostgres

TEMPLATE = "stopline_template"
SQL = CHECKOUT / "sql"
IDENTITY = "test"
"""The installation that test claims name."""


def make_template(server: EmbeddedPostgres, name: str = TEMPLATE, sql: Path = SQL) -> None:
    """Makes the database `name` from the files in `sql`, unless it exists whole."""
    with psycopg.connect(**server.admin_conninfo(), autocommit=True) as admin:  # type: ignore[arg-type]
        done = admin.execute("select datistemplate from pg_database where datname = %s", [name]).fetchone()
        if done is not None and done[0]:
            return
        admin.execute(f'drop database if exists "{name}"')
        admin.execute(f'create database "{name}"')
        with psycopg.connect(**server.admin_conninfo(name), autocommit=True) as conn:  # type: ignore[arg-type]
            bootstrap(conn, sql)
            migrate(conn, sql, {}, {}, identity=IDENTITY, local_clock=True)
        # Set last: it says that the template is whole.
        admin.execute(f'alter database "{name}" is_template true')
