"""`stopline migrate`: brings the local database to what this checkout says."""

from typing import Annotated

import typer

from stopline.policy import load_policies
from stopline_cli.local.database import DATABASE, local_server
from stopline_cli.local.prepare import JOBS, deploy, make_database, make_sample_application
from stopline_cli.options import Json
from stopline_cli.output import print_json, print_lines

NAME = "local"


def migrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the SQL and change nothing.")] = False,
    as_json: Json = False,
) -> None:
    """Apply migrations, functions, policies and sources to the database of `stopline local`.

    Roles, schemas and the sample application's tables come first, also before a dry run: they are the administrator's
    part, which a deploy finds in place.
    """
    policies = load_policies(JOBS)
    with local_server(NAME) as server:
        make_database(server, DATABASE)
        make_sample_application(server, DATABASE)
        report = deploy(server, DATABASE, policies, identity=NAME, dry_run=dry_run)
    if as_json:
        print_json(
            {
                "schema_version": report.schema_version,
                "lines": report.lines,
                "warnings": report.warnings,
                "sql": report.sql,
            }
        )
        return
    if dry_run:
        # Not through the console: folded SQL is no longer what would run.
        typer.echo("\n\n".join(report.sql))
    print_lines(report.lines or ["nothing to do"])
    print_lines(f"warning: {warning}" for warning in report.warnings)
