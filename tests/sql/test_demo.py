"""`stopline demo` for real: server, functions, stand-ins and clock, and what it says of itself at the end."""

import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline_cli.local.folders import CHECKOUT, STATE_VARIABLE
from stopline_cli.local.postgres import EmbeddedPostgres

SECONDS = 120


@pytest.fixture
def state() -> Iterator[Path]:
    """A folder for the demo's database that no developer's demo uses."""
    with tempfile.TemporaryDirectory(prefix="stopline-") as name:
        yield Path(name)
        EmbeddedPostgres(Path(name) / "demo", durable=False).destroy()


def start(state: Path, *words: str) -> subprocess.Popen[str]:
    """Without HOME, and with nothing of PATH but the system's own programs."""
    paths = os.pathsep.join(str(CHECKOUT / part) for part in ("layers/stopline/python", "cli"))
    return subprocess.Popen(
        [sys.executable, "-m", "stopline_cli", *words],
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, STATE_VARIABLE: str(state)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def stopline(state: Path, *words: str) -> tuple[int, str, str]:
    with start(state, *words) as process:
        out, err = process.communicate(timeout=SECONDS)
        return process.returncode, out, err


def demo(state: Path, *words: str) -> dict[str, Any]:
    status, out, err = stopline(state, "demo", "--json", *words)
    assert status == 0, out + err
    *before, last = out.splitlines()
    assert before == []
    result: dict[str, Any] = json.loads(last)
    assert result["met"] is True
    return result


def running_in(state: Path) -> list[str]:
    """Commands of processes that name this folder or were told of it."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            words = (process / "cmdline").read_bytes()
            if os.fsencode(state) in words + (process / "environ").read_bytes():
                found.append(words.decode(errors="replace"))
    return found


def test_the_incident_ends_properly_and_can_be_looked_at_afterwards(state: Path) -> None:
    result = demo(state)
    closing, export = (result["kinds"][kind] for kind in ("close_conversation", "accounting_export"))
    assert closing["states"] == {"abandoned": 4, "succeeded": 19}
    assert closing["stop_reasons"] == {
        "attempts_exhausted": 1,
        "budget_exhausted": 1,
        "completed": 19,
        "crashes_exhausted": 1,
        "permanent_failure": 1,
    }
    assert (closing["attempts"], closing["calls"]) == (36, 35)
    assert export["states"] == {"abandoned": 2, "succeeded": 3, "uncertain": 1}
    assert export["stop_reasons"] == {"completed": 3, "deadline_passed": 1, "permanent_failure": 1}
    # Nothing was sent to find out what had become of what was sent: the connector was asked instead.
    assert (export["attempts"], export["calls"], export["checks"]) == (7, 7, 6)
    assert 1 < float(closing["spend_usd"]) < float(closing["worst_case_usd"]) < float(closing["uncapped_spend_usd"])
    assert result["simulated_hours"] > 1

    outage = result["outage"]
    assert outage["states"] == {"succeeded": 7}
    assert (outage["calls_while_down"], outage["uncapped_calls_while_down"]) == (14, 168)
    assert outage["attempts"] == outage["calls"] == 21
    assert outage["events"] == ["breaker_opened", *["breaker_extended"] * 7, "breaker_closed"]
    assert result["seconds"] < 60

    year = result["year"]
    assert (year["calls"], year["calls_after_the_stop"], year["uncapped_calls"]) == (5, 0, 525_600)
    assert (year["polls_run"], year["polls_that_changed_something"]) == (22, 0)
    assert (year["stop_reason"], year["acknowledged"], year["acknowledged_again"]) == ("attempts_exhausted", 3, 36)
    assert float(year["spend_usd"]) < float(year["worst_case_usd"]) == 1
    assert year["uncapped_spend_usd"] == "105120.000000"

    status, out, _ = stopline(state, "jobs", "--on", "demo", "--state", "abandoned", "--json")
    poison = next(job for job in json.loads(out) if job["stop_reason"] == "attempts_exhausted")
    status, out, _ = stopline(state, "show", str(poison["id"]), "--on", "demo")
    assert status == 0
    assert out.count("the model's answer has no text") >= 5

    status, out, _ = stopline(state, "jobs", "--on", "demo", "--state", "uncertain", "--json")
    (waiting,) = json.loads(out)
    assert (waiting["key"], waiting["checks"], waiting["next_check_at"]) == ("batch:fells-w48", 5, None)
    status, out, _ = stopline(state, "show", str(waiting["id"]), "--on", "demo")
    assert status == 0
    assert out.count("HTTP 503") >= 5
    assert "finance-systems" in out


def test_a_lower_cap_changes_what_comes_of_it_and_what_it_costs(state: Path) -> None:
    result = demo(state, "--cap", "3")
    closing = result["kinds"]["close_conversation"]
    assert closing["max_attempts"] == 3
    assert closing["stop_reasons"] == {
        "attempts_exhausted": 2,
        "completed": 19,
        "crashes_exhausted": 1,
        "permanent_failure": 1,
    }
    assert (closing["attempts"], closing["calls"]) == (32, 31)
    assert closing["worst_case_usd"] == "13.800000"
    assert (result["year"]["calls"], result["year"]["calls_at_most"]) == (3, 3)
    assert result["outage"]["calls_while_down"] == 14


def test_an_interrupted_demo_stops_what_it_started(state: Path) -> None:
    with start(state, "demo") as process:
        assert process.stdout is not None
        for line in process.stdout:
            if line.startswith("Stand-in for the accounting connector"):
                break
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=SECONDS)
        assert process.returncode == 130
    assert not (state / "demo" / "postmaster.pid").exists()
    assert not running_in(state)


def test_a_second_demo_beside_one_that_runs_is_refused(state: Path) -> None:
    with (state / "demo.running").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        status, _, err = stopline(state, "demo")
    assert status == 1
    assert err == "error: demo: runs already, in another process. Fix: wait until that one has ended\n"
