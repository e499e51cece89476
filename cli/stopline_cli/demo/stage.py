"""The parts of the demo, all real: server, database, stand-ins and functions. Whatever was started ends with it."""

import fcntl
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from stopline.migrate.runner import Report
from stopline.policy import Policy
from stopline.store.connection import Session
from stopline.store.reads import ReadStore
from stopline_cli.demo.clock import SimulatedClock
from stopline_cli.errors import CommandError
from stopline_cli.local.database import DATABASE, local_server, local_target
from stopline_cli.local.deployment import Deployment
from stopline_cli.local.folders import state_folder
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect, deploy, load_samples, make_database, make_sample_application
from stopline_cli.standins.process import StandInProcess

NAME = "demo"


@dataclass(frozen=True, slots=True)
class Database:
    """The migrated database with the sample application's rows. `admin` is the superuser, autocommit."""

    server: EmbeddedPostgres
    admin: psycopg.Connection[tuple[Any, ...]]
    reads: ReadStore
    clock: SimulatedClock
    migration: Report
    samples: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that runs."""

    database: Database
    bedrock: StandInProcess
    connector: StandInProcess
    functions: Deployment


@contextmanager
def only_demo() -> Iterator[None]:
    """Refuses a second demo beside one that runs: it would pull the database from under it."""
    with (state_folder() / f"{NAME}.running").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise CommandError(NAME, "runs already, in another process", "wait until that one has ended") from None
        yield


@contextmanager
def fresh_database(policies: Mapping[str, Policy]) -> Iterator[Database]:
    """A database without a past. The server is stopped at the end; the data stay for `stopline show`."""
    server = local_server(NAME)
    server.destroy()
    with ExitStack() as stack:
        stack.enter_context(server)
        make_database(server, DATABASE)
        make_sample_application(server, DATABASE)
        migration = deploy(server, DATABASE, policies, identity=NAME)
        samples = load_samples(server, DATABASE)
        admin = stack.enter_context(connect(server, DATABASE))
        session = Session(local_target(server, "stopline_operator"))
        stack.callback(session.close)
        yield Database(server, admin, ReadStore(session), SimulatedClock(admin), migration, samples)


@contextmanager
def set_up(database: Database, policies: Mapping[str, Policy]) -> Iterator[Stage]:
    """Stand-ins and functions around the database. Functions start when first invoked."""
    with StandInProcess("bedrock") as bedrock, StandInProcess("connector") as connector:
        environment = _addresses(bedrock, connector)
        with Deployment(database.server, policies, identity=NAME, environment=environment) as functions:
            yield Stage(database, bedrock, connector, functions)


def _addresses(bedrock: StandInProcess, connector: StandInProcess) -> dict[str, str]:
    """How the kinds find the stand-ins, and nothing of this machine's own AWS configuration."""
    return {
        "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url,
        "AWS_ACCESS_KEY_ID": NAME,
        "AWS_SECRET_ACCESS_KEY": NAME,
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "ACCOUNTING_URL": connector.url,
    }
