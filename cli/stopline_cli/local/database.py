"""The local databases that commands look at, by name; their server is started for as long as a command needs it."""

from collections.abc import Iterator
from contextlib import contextmanager

from stopline.store.connection import Session
from stopline.store.reads import ReadStore
from stopline.store.target import Target
from stopline_cli.errors import CommandError
from stopline_cli.local.folders import state_folder
from stopline_cli.local.postgres import EmbeddedPostgres

DATABASE = "stopline"
"""The database's name within its server."""

FIX = {"local": "run `stopline migrate` or `stopline local` first", "demo": "run `make demo` first"}


def local_server(name: str) -> EmbeddedPostgres:
    """The server of the local database `name`, not yet started. Only the demo's data may be lost in a power cut."""
    return EmbeddedPostgres(state_folder() / name, durable=name != "demo")


def local_target(server: EmbeddedPostgres, role: str, dbname: str = DATABASE) -> Target:
    """Where the library's connections as `role` go."""
    place = server.admin_conninfo(dbname)
    return Target(
        host=str(place["host"]), port=int(place["port"]), dbname=dbname, user=role, application_name="stopline-cli"
    )


@contextmanager
def operator_session(name: str) -> Iterator[Session]:
    """A session as `stopline_operator` on the local database `name`. Raises CommandError when it was never made."""
    server = local_server(name)
    if not server.data_dir.exists():
        raise CommandError(f"local database {name!r}", "does not exist yet", FIX[name])
    with server:
        session = Session(local_target(server, "stopline_operator"))
        try:
            yield session
        finally:
            session.close()


@contextmanager
def reading(name: str) -> Iterator[ReadStore]:
    """What an operator may read of the local database `name`. Raises CommandError when it was never made."""
    with operator_session(name) as session:
        yield ReadStore(session)
