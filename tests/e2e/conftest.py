"""Functions of synthesized deployments, run in execution environments that end with the test."""

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stopline.policy import load_policies
from stopline_cli.local.postgres import EmbeddedPostgres
from tests.e2e.harness.deployment import FAULTY_KINDS, Deployment, faulty, shipped
from tests.e2e.harness.function import Function
from tests.e2e.harness.instance import Instance
from tests.sql.conftest import server
from tests.support.database import Database, fresh_database
from tests.support.deploys import deploy

__all__ = ["server"]

Start = Callable[..., Instance]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The emulator is a Linux program, as Lambda is Linux."""
    if sys.platform == "linux":
        return
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.skip(reason="the Lambda runtime emulator runs on Linux only"))


@pytest.fixture(scope="session")
def app() -> Deployment:
    """What a person deploys: the default configuration with the shipped kinds."""
    return shipped()


@pytest.fixture(scope="session")
def faults() -> Deployment:
    """The same app with the kinds of tests/e2e/kinds."""
    return faulty()


@pytest.fixture
def db(server: EmbeddedPostgres) -> Iterator[Database]:
    """A database with the kinds of tests/e2e/kinds."""
    with fresh_database(server) as database:
        deploy(database, kinds=load_policies(FAULTY_KINDS))
        yield database


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """`start(function)` is a new execution environment of it; `group` a memory cgroup to put it in."""
    with ExitStack() as running:
        started: list[Instance] = []

        def start(function: Function, group: Path | None = None) -> Instance:
            instance = Instance(function, tmp_path / f"environment-{len(started)}", group)
            started.append(instance)
            return running.enter_context(instance)

        yield start
