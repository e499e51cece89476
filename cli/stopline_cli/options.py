"""Options that several commands share."""

from enum import StrEnum
from typing import Annotated

import typer


class Place(StrEnum):
    """A local database by name."""

    LOCAL = "local"
    DEMO = "demo"


On = Annotated[Place, typer.Option("--on", help="Which local database: of `stopline local` or of the last demo.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
Aws = Annotated[bool, typer.Option("--aws", help="A deployment on AWS, by the AWS SDK's own settings.")]
Prefix = Annotated[str, typer.Option("--prefix", help="With --aws: what the names of its stacks start with.")]
