"""`stopline local` is a whole deployment: real handlers, real database, stand-ins, until an interrupt."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline_cli.local.database import DATABASE
from stopline_cli.local.folders import CHECKOUT, STATE_VARIABLE
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect

Local = subprocess.Popen[str]


@pytest.fixture
def state() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="stopline-") as name:
        yield Path(name)
        EmbeddedPostgres(Path(name) / "local", durable=True).destroy()


@pytest.fixture
def local(state: Path) -> Iterator[Local]:
    paths = os.pathsep.join(str(CHECKOUT / part) for part in ("layers/stopline/python", "cli"))
    with subprocess.Popen(
        [sys.executable, "-m", "stopline_cli", "local", "--samples", "--json"],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, STATE_VARIABLE: str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        # A command that hangs is ended, so that the test that reads from it fails instead of hanging too.
        watchdog = threading.Timer(90, process.kill)
        watchdog.start()
        yield process
        watchdog.cancel()
        process.kill()


def answers(local: Local, count: int) -> dict[str, Any]:
    """The first answers of as many functions, by the function's name."""
    assert local.stdout is not None
    found: dict[str, Any] = {}
    while len(found) < count:
        line = local.stdout.readline()
        assert line, local.communicate()[1]
        answer = json.loads(line)
        found[answer["function"]] = answer["result"]
    return found


def test_the_sample_conversations_are_closed_within_one_tick_and_an_interrupt_ends_it_in_order(
    local: Local, state: Path
) -> None:
    found = answers(local, 4)
    assert set(found) == {"poller-accounting_export", "poller-close_conversation", "sweeper", "monitor"}
    polled = found["poller-close_conversation"]["kinds"]["close_conversation"]
    assert polled["tick"]["created"] > 0
    assert polled["outcomes"] == {"succeeded": polled["tick"]["created"]}

    local.send_signal(signal.SIGINT)
    _, errors = local.communicate(timeout=60)
    assert (local.returncode, errors) == (0, "")
    assert not (state / "local" / "postmaster.pid").exists()

    with EmbeddedPostgres(state / "local", durable=True) as server, connect(server, DATABASE) as admin:
        due = "status = 'open' and last_message_at < now() - interval '30 minutes'"
        assert admin.execute(f"select count(*) from support.conversations where {due}").fetchone() == (0,)
        assert admin.execute("select distinct state from stopline.job").fetchall() == [("succeeded",)]
