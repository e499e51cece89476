"""The template database: bootstrapped and migrated once a run, by the code that deploys."""

import os
from pathlib import Path

from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import SQL, connect, deploy, make_database
from tests.support.run import SQL_VARIABLE

TEMPLATE = "stopline_template"
IDENTITY = "test"
"""The installation that test claims name."""


def make_template(server: EmbeddedPostgres, name: str = TEMPLATE, sql_dir: Path | None = None) -> None:
    """Makes the database `name` from the files in `sql_dir`, unless it exists whole."""
    sql_dir = sql_dir or Path(os.environ.get(SQL_VARIABLE, SQL))
    with connect(server, "postgres") as admin:
        row = admin.execute("select datistemplate from pg_database where datname = %s", [name]).fetchone()
        if row is not None and row[0]:
            return
        admin.execute(f'drop database if exists "{name}"')
        make_database(server, name, sql_dir)
        deploy(server, name, {}, identity=IDENTITY, sql_dir=sql_dir)
        # Set last: it says that the template is whole.
        admin.execute(f'alter database "{name}" is_template true')
