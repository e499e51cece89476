"""The local server is made once, shared, survives the death of whoever started it, and says why it cannot start."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from stopline_cli.errors import CommandError
from stopline_cli.local.account import Account
from stopline_cli.local.folders import CHECKOUT
from stopline_cli.local.postgres import EmbeddedPostgres

USER = """
import sys
from pathlib import Path
from stopline_cli.local.postgres import EmbeddedPostgres
server = EmbeddedPostgres(Path(sys.argv[1]), durable=False)
server.start()
print("started", flush=True)
sys.stdin.readline()
server.stop()
print("stopped", flush=True)
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that the server's account may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="stopline-") as name:
        Path(name).chmod(0o711)
        data = Path(name) / "pg"
        yield data
        EmbeddedPostgres(data, durable=False).destroy()


def start_user(folder: Path) -> subprocess.Popen[str]:
    """Another process that starts the same server and stops it when it is given a line."""
    return subprocess.Popen(
        [sys.executable, "-c", USER, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(CHECKOUT / "cli")},
    )


def hears(user: subprocess.Popen[str], word: str) -> None:
    assert user.stdout is not None
    assert user.stdout.readline() == f"{word}\n"


def ends(user: subprocess.Popen[str]) -> None:
    user.communicate("\n", timeout=60)
    assert user.returncode == 0


def postmaster(folder: Path) -> int:
    return int((folder / "postmaster.pid").read_text().split()[0])


def test_two_processes_that_start_the_same_new_folder_at_once_share_one_server(folder: Path) -> None:
    first, second = start_user(folder), start_user(folder)
    hears(first, "started")
    hears(second, "started")
    pid = postmaster(folder)
    ends(first)
    assert postmaster(folder) == pid
    ends(second)
    assert not (folder / "postmaster.pid").exists()


def test_a_server_outlives_the_killed_process_that_started_it_and_the_next_one_takes_over(folder: Path) -> None:
    first = start_user(folder)
    hears(first, "started")
    pid = postmaster(folder)
    first.kill()
    first.communicate()
    server = EmbeddedPostgres(folder, durable=False)
    server.start()
    assert postmaster(folder) == pid
    server.stop()
    assert not (folder / "postmaster.pid").exists()


def test_a_pid_file_that_names_somebody_elses_process_does_not_keep_the_server_from_starting(folder: Path) -> None:
    server = EmbeddedPostgres(folder, durable=False)
    server.start()
    pid_file = (folder / "postmaster.pid").read_text()
    os.kill(postmaster(folder), signal.SIGQUIT)
    server.stop()
    stale = pid_file.replace(pid_file.split()[0], str(os.getpid()), 1)
    (folder / "postmaster.pid").write_text(stale)
    server.start()
    assert postmaster(folder) != os.getpid()
    server.stop()


def test_data_is_kept_from_one_start_to_the_next(folder: Path) -> None:
    server = EmbeddedPostgres(folder, durable=True)
    with server, psycopg.connect(**server.admin_conninfo(), autocommit=True) as conn:  # type: ignore[arg-type]
        conn.execute("create table kept as select 42 as value")
        assert conn.execute("show fsync").fetchone() == ("on",)
    with server, psycopg.connect(**server.admin_conninfo()) as conn:  # type: ignore[arg-type]
        assert conn.execute("select value from kept").fetchone() == (42,)


def test_a_start_that_fails_shows_what_the_server_logged(folder: Path) -> None:
    server = EmbeddedPostgres(folder, durable=False)
    server.start()
    server.stop()
    with (folder / "postgresql.conf").open("a") as file:
        file.write("work_mem = 'plenty'\n")
    with pytest.raises(CommandError, match=r"did not start:(.|\n)*invalid value for parameter \"work_mem\""):
        server.start()


def test_data_of_another_major_version_is_refused_by_name(folder: Path) -> None:
    server = EmbeddedPostgres(folder, durable=False)
    server.start()
    server.stop()
    (folder / "PG_VERSION").write_text("9\n")
    with pytest.raises(CommandError, match="was made by PostgreSQL 9, and the server is"):
        server.start()


def test_a_folder_too_deep_for_a_socket_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("d" * 60)
    with pytest.raises(CommandError, match="at most 107 bytes"):
        EmbeddedPostgres(deep, durable=False).start()
    assert not deep.parent.exists()


def test_a_closed_folder_above_is_found_for_a_lent_account(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    (closed / "open").mkdir(parents=True)
    closed.chmod(0o700)
    stranger = Account(uid=os.geteuid() + 54321, gid=os.getegid() + 54321, lent=True)
    found = stranger.closed_above(closed / "open" / "file")
    assert found is not None
    assert not stranger.enters(closed)
    assert stranger.closed_above(Path("/usr/file")) is None
