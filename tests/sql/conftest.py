"""A fresh database for every test, copied from one template on one server."""

from collections.abc import Iterator

import pytest

from stopline_cli.local.postgres import EmbeddedPostgres
from tests.support.database import Database, fresh_database
from tests.support.server import join_run


@pytest.fixture(scope="session")
def server() -> Iterator[EmbeddedPostgres]:
    server = join_run()
    yield server
    server.stop()


@pytest.fixture
def db(server: EmbeddedPostgres) -> Iterator[Database]:
    with fresh_database(server) as database:
        yield database
