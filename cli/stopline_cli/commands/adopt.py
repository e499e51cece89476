"""`stopline adopt`: says that a restored copy belongs to this deployment, so that its pollers may claim."""

from typing import Annotated, Any

import typer

from stopline.migrate.adoption import Adoption
from stopline.migrate.adoption import adopt as adopt_database
from stopline_cli.actor import local_actor
from stopline_cli.errors import CommandError
from stopline_cli.local.database import DATABASE, FIX, local_server
from stopline_cli.local.prepare import OWNER, connect
from stopline_cli.options import Aws, Json, On, Place, Prefix
from stopline_cli.output import print_json, print_lines


def adopt(
    identity: Annotated[str, typer.Option(help="What the deployment's pollers claim with (STOPLINE_INSTALLATION).")],
    reason: Annotated[str, typer.Option(help="Why, for the audit.")],
    on: On = Place.LOCAL,
    aws: Aws = False,
    prefix: Prefix = "Stopline",
    as_json: Json = False,
) -> None:
    """Give a database to the deployment that claims with IDENTITY. A copy of another one's is refused until then.

    Stop the pollers of the database's former deployment first, if they still reach it: a claim in flight is finished.
    """
    adoption = _on_aws(prefix, identity, reason) if aws else _locally(on.value, identity, reason)
    if as_json:
        print_json(adoption.to_row())
        return
    print_lines([adoption.line])


def _locally(name: str, identity: str, reason: str) -> Adoption:
    server = local_server(name)
    if not server.data_dir.exists():
        raise CommandError(f"local database {name!r}", "does not exist yet", FIX[name])
    with server, connect(server, DATABASE, OWNER) as owner:
        return adopt_database(owner, identity, local_actor(), reason)


def _on_aws(prefix: str, identity: str, reason: str) -> Adoption:
    """By the migrator, which speaks for the deployment: the identity must be its own."""
    from stopline_cli.doctor.account import Account, MissingRight
    from stopline_cli.doctor.deployment import invoke, migrator

    account = Account()
    function = migrator(account, prefix)
    own = function.environment.get("STOPLINE_INSTALLATION", "")
    if identity != own:
        raise CommandError(
            f"identity {identity!r}",
            f"is not that of deployment {prefix}, whose pollers claim with {own!r}",
            "name the deployment that shall own the database (--prefix, AWS_REGION), and its identity",
        )
    try:
        actor = account.call("sts", "GetCallerIdentity")["Arn"]
        answer: dict[str, Any] = invoke(account, function, {"adopt": {"actor": actor, "reason": reason}})
    except MissingRight as missing:
        raise CommandError("adopt", str(missing), f"allow {missing.action} to the caller") from None
    return Adoption(**answer)
