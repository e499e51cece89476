"""The `stopline` command on a local database of its own: what it prints, and how its errors end."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline_cli.local.database import DATABASE
from stopline_cli.local.folders import CHECKOUT, STATE_VARIABLE
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import connect

Command = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    """A folder for local databases that no developer's `stopline local` uses."""
    with tempfile.TemporaryDirectory(prefix="stopline-") as name:
        yield Path(name)
        EmbeddedPostgres(Path(name) / "local", durable=True).destroy()


@pytest.fixture(scope="module")
def stopline(state: Path) -> Command:
    def run(*words: str) -> subprocess.CompletedProcess[str]:
        paths = os.pathsep.join(str(CHECKOUT / part) for part in ("layers/stopline/python", "cli"))
        return subprocess.run(
            [sys.executable, "-m", "stopline_cli", *words],
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": paths, STATE_VARIABLE: str(state), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


@pytest.fixture(scope="module")
def job(stopline: Command, state: Path) -> int:
    """A job of close_conversation, enqueued on the migrated local database."""
    assert stopline("migrate").returncode == 0
    with EmbeddedPostgres(state / "local", durable=True) as server, connect(server, DATABASE) as admin:
        row = admin.execute(
            "select job_id from stopline.enqueue('close_conversation', '{}', '[red]key[/red]')"
        ).fetchone()
        assert row is not None
        return int(row[0])


def answered(done: subprocess.CompletedProcess[str]) -> Any:
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_kinds_prints_the_worst_case_of_each_without_a_database(stopline: Command) -> None:
    assert "close_conversation: 5 attempts x 1 call x $0.20 = at most $1.00 a round" in stopline("kinds").stdout
    found = {kind["name"]: kind for kind in answered(stopline("kinds", "--json"))}
    assert found["close_conversation"]["worst_case"]["calls"] == 5
    assert found["accounting_export"]["idempotent"] is False


def test_a_database_that_was_never_made_is_named_with_the_command_that_makes_it(stopline: Command) -> None:
    done = stopline("jobs", "--on", "demo")
    assert done.returncode == 1
    assert done.stderr == "error: local database 'demo': does not exist yet. Fix: run `make demo` first\n"


def test_a_second_migration_finds_nothing_to_do(stopline: Command, job: int) -> None:
    report = answered(stopline("migrate", "--json"))
    assert report["lines"] == []
    assert report["schema_version"] >= 1
    assert "sync_policy" in stopline("migrate", "--dry-run").stdout


def test_jobs_lists_by_kind_and_state_and_shows_keys_as_they_are(stopline: Command, job: int) -> None:
    assert "[red]key[/red]" in stopline("jobs").stdout
    (found,) = answered(stopline("jobs", "--json", "--kind", "close_conversation", "--state", "pending"))
    assert (found["id"], found["attempts"], found["max_attempts"]) == (job, 0, 5)
    assert answered(stopline("jobs", "--json", "--state", "abandoned")) == []


def test_show_explains_a_job_and_gives_the_same_as_json(stopline: Command, job: int) -> None:
    text = stopline("show", str(job)).stdout
    assert f"Job {job} · close_conversation · key [red]key[/red] · pending" in text
    assert "Waiting: attempt 1 of 5 has been due since" in text
    shown = answered(stopline("show", str(job), "--json"))
    assert shown["explanation"][-1] == "Kind close_conversation is owned by support-platform."


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("show", "987654321"), 1, "error: job 987654321: is not in the local database. Fix: "),
        (("show", "x"), 2, "Invalid value for 'ID'"),
        (("show", str(2**63)), 2, "Invalid value for 'ID'"),
        (("jobs", "--state", "lost"), 2, "'lost' is not one of 'pending'"),
        (("jobs", "--limit", "0"), 2, "Invalid value for '--limit'"),
    ],
)
def test_a_wrong_word_is_answered_with_its_rule_and_no_traceback(
    stopline: Command, job: int, words: tuple[str, ...], status: int, message: str
) -> None:
    done = stopline(*words)
    assert done.returncode == status
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_adopt_says_what_changed_and_repeated_that_it_is_done(stopline: Command, job: int) -> None:
    words = ("adopt", "--identity", "copy", "--reason", "a restore")
    assert "this database now belongs to 'copy'" in stopline(*words).stdout
    assert stopline(*words).stdout == "already done: this database belongs to 'copy'\n"
    back = answered(stopline("adopt", "--identity", "local", "--reason", "back again", "--json"))
    assert (back["changed"], back["identity"]) == (True, "local")


def test_doctor_prints_every_check_and_fails_when_one_does(stopline: Command, state: Path, job: int) -> None:
    """A fresh database has no sweeper and no poller yet, and what is due waits for one."""
    shown = stopline("doctor")
    assert "the movable clock of `stopline local`" in shown.stdout
    with EmbeddedPostgres(state / "local", durable=True) as server, connect(server, DATABASE) as admin:
        admin.execute("grant select on stopline.job to public")
        found = stopline("doctor", "--json")
        admin.execute("revoke select on stopline.job from public")
    assert found.returncode == 1
    report = json.loads(found.stdout)
    assert report["worst"] == "fail"
    (line,) = (f for f in report["findings"] if (f["part"], f["name"]) == ("rights", "nothing is everybody's"))
    assert (line["level"], line["found"]) == ("fail", "table stopline.job")
    assert stopline("doctor").returncode == shown.returncode


def test_doctor_on_aws_without_a_region_says_what_to_set(stopline: Command) -> None:
    done = stopline("doctor", "--aws")
    assert (done.returncode, done.stdout) == (1, "")
    fix = "set AWS_REGION, or a profile with a region in AWS_PROFILE"
    assert done.stderr == f"error: AWS region: is not known. Fix: {fix}\n"
