"""The command `stopline` on a local database of one test: run in this process, by its own entry point."""

import json
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stopline_cli.local.database import DATABASE
from stopline_cli.local.folders import STATE_VARIABLE
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect
from stopline_cli.main import main
from tests.support.database import Database
from tests.support.template import TEMPLATE, make_template


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    status: int
    out: str
    err: str

    @property
    def answer(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.out)


class Command:
    """Runs `stopline WORDS` with the local databases in `state`."""

    def __init__(self, state: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        monkeypatch.setenv(STATE_VARIABLE, str(state))

    def __call__(self, *words: object) -> Done:
        self._monkeypatch.setattr(sys, "argv", ["stopline", *map(str, words)])
        self._capsys.readouterr()
        status = 0
        try:
            main()
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = self._capsys.readouterr()
        return Done(status, out, err)


@contextmanager
def local_postgres(state: Path) -> Iterator[EmbeddedPostgres]:
    """The server of the local database `local` in `state`, running, with the template of the tests."""
    state.chmod(0o711)
    server = EmbeddedPostgres(state / "local", durable=False)
    try:
        with server:
            make_template(server)
            yield server
    finally:
        server.destroy()


@contextmanager
def local_database(server: EmbeddedPostgres) -> Iterator[Database]:
    """A fresh database in the place where the command looks."""
    with connect(server, "postgres") as admin:
        admin.execute(f'drop database if exists "{DATABASE}" with (force)')
        admin.execute(f'create database "{DATABASE}" template "{TEMPLATE}"')
    with ExitStack() as cleanup:
        yield Database(server, cleanup, DATABASE)
