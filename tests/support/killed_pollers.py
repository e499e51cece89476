"""Poller processes that die in the middle of every attempt: claimed, called out, killed before any finish.

What each call would have cost is one line in a file, written before the death. The processes are forked from one that
has everything imported, so that a lap of eight takes milliseconds.
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from stopline.store.connection import Session, Target
from stopline.store.worker import WorkerStore
from tests.support.database import Database
from tests.support.poller import sweep

CHECKOUT = Path(__file__).parents[2]
NOTHING_CLAIMED = 3
KILLED = -signal.SIGKILL


def main(arguments: str) -> None:
    """For every line on standard input: fork the pollers, wait for all, print how they ended."""
    given = json.loads(arguments)
    for _ in sys.stdin:
        children = [_fork(given) for _ in range(given["pollers"])]
        print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]), flush=True)


def _fork(given: dict[str, Any]) -> int:
    child = os.fork()
    if child == 0:
        try:
            _poll_and_die(given)
        finally:
            os._exit(1)
    return child


def _poll_and_die(given: dict[str, Any]) -> None:
    store = WorkerStore(Session(Target(**given["target"])))
    claim = store.claim(given["kind"], f"poller-{os.getpid()}", uuid4(), given["batch"], 900, given["identity"])
    if not claim.jobs:
        os._exit(NOTHING_CLAIMED)
    with Path(given["calls"]).open("ab", buffering=0) as calls:
        for job in claim.jobs:
            calls.write(f"{job.id} {job.attempt}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


def calls_until_quiet(
    db: Database, folder: Path, kind: str = "work", *, pollers: int = 8, batch: int = 1, lap: str = "1h", laps: int = 40
) -> list[str]:
    """Lap after lap, `pollers` processes claim together and are killed; then the clock moves past every lease and
    backoff, and the sweeper runs. Ends after two laps in which nobody claimed. Returns the calls that were made."""
    calls = folder / "calls"
    calls.touch()
    target = db.target("stopline_worker")
    arguments = {
        "target": {name: getattr(target, name) for name in target.__slots__},
        "kind": kind,
        "identity": db.identity,
        "batch": batch,
        "pollers": pollers,
        "calls": str(calls),
    }
    with _parent(json.dumps(arguments)) as parent:
        assert parent.stdin
        assert parent.stdout
        quiet = 0
        for _ in range(laps):
            parent.stdin.write("lap\n")
            parent.stdin.flush()
            ends = set(json.loads(parent.stdout.readline()))
            assert ends <= {NOTHING_CLAIMED, KILLED}, ends
            quiet = quiet + 1 if ends == {NOTHING_CLAIMED} else 0
            if quiet == 2:
                parent.stdin.close()
                return calls.read_text().splitlines()
            db.move(lap)
            sweep(db)
    raise AssertionError(f"still claiming after {laps} laps")


def _parent(arguments: str) -> "subprocess.Popen[str]":
    path = [CHECKOUT, CHECKOUT / "layers/stopline/python", CHECKOUT / "cli"]
    return subprocess.Popen(
        [sys.executable, "-c", f"from tests.support.killed_pollers import main; main({arguments!r})"],
        env={"PYTHONPATH": os.pathsep.join(map(str, path)), "PATH": os.defpath},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
