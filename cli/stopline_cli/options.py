"""Options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer

from stopline_cli.errors import CommandError

LARGEST_ID = 2**63 - 1


class Place(StrEnum):
    """A local database by name."""

    LOCAL = "local"
    DEMO = "demo"


On = Annotated[Place, typer.Option("--on", help="Which local database: of `stopline local` or of the last demo.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Aws = Annotated[bool, typer.Option("--aws", help="A deployment on AWS, by the AWS SDK's own settings.")]
Prefix = Annotated[str, typer.Option("--prefix", help="With --aws: what the names of its stacks start with.")]

Local = Annotated[bool, typer.Option("--local", help="The same as --on local.")]
Jobs = Annotated[
    list[int], typer.Argument(metavar="JOB", min=1, max=LARGEST_ID, help="The jobs' numbers, done one by one.")
]
Kind = Annotated[str, typer.Argument(metavar="KIND", help="The kind's name.")]
Reason = Annotated[str, typer.Option("--reason", help="Why, for the audit.")]
EffectsChecked = Annotated[
    str, typer.Option("--effects-checked", help="How it was made sure what became of the effect of earlier attempts.")
]
Actor = Annotated[
    str | None, typer.Option("--actor", help="Who acts, for the audit. This machine's user if not given.")
]


def place(on: Place, local: bool) -> Place:
    """The database that --on and --local name together."""
    if local and on is not Place.LOCAL:
        raise CommandError("--local", f"names another database than --on {on.value}", "give one of the two")
    return on
