"""`stopline adopt`: says that a restored copy belongs to this deployment, so that its pollers may claim."""

from typing import Annotated

import typer

from stopline.migrate.adoption import adopt as adopt_database
from stopline_cli.actor import local_actor
from stopline_cli.errors import CommandError
from stopline_cli.local.database import DATABASE, FIX, local_server
from stopline_cli.local.prepare import OWNER, connect
from stopline_cli.options import Json, On, Place
from stopline_cli.output import print_json, print_lines


def adopt(
    identity: Annotated[str, typer.Option(help="What the deployment's pollers claim with (STOPLINE_INSTALLATION).")],
    reason: Annotated[str, typer.Option(help="Why, for the audit.")],
    on: On = Place.LOCAL,
    as_json: Json = False,
) -> None:
    """Give a database to the deployment that claims with IDENTITY; a copy of another one's is refused until then.

    On AWS the migrator does it: docs/deploy.md, "Restore".
    """
    server = local_server(on.value)
    if not server.data_dir.exists():
        raise CommandError(f"local database {on.value!r}", "does not exist yet", FIX[on.value])
    with server, connect(server, DATABASE, OWNER) as owner:
        adoption = adopt_database(owner, identity, local_actor(), reason)
    if as_json:
        print_json(adoption.to_row())
        return
    print_lines([adoption.line])
