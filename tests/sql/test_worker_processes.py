"""Nothing of an attempt outlives it, and nothing that it does reaches the queue's own connection."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stopline_cli.local.functions import FunctionFailed
from tests.support.blocking import in_background
from tests.support.database import Database
from tests.support.real_poller import RealPoller

DAEMON = """
    import os, time
    from pathlib import Path

    def run(job):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                Path(job.payload["pid"]).write_text(str(os.getpid()))
                while True:
                    time.sleep(60)
            os._exit(0)
        os.wait()
        while not Path(job.payload["pid"]).exists():
            time.sleep(0.001)
        return "left a daemon"
"""


@pytest.fixture
def poller(db: Database, tmp_path: Path) -> Iterator[RealPoller]:
    with RealPoller(db, tmp_path) as poller:
        yield poller


def until(condition: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < give_up, f"not within 5 s: {what}"
        time.sleep(0.005)


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_grandchild_with_its_own_session_that_holds_the_pipes_neither_survives_nor_holds_up_the_attempt(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    poller.kind("daemon", DAEMON, timeout=5)
    job = db.enqueue("daemon", {"pid": str(tmp_path / "pid")}).job_id or 0
    begun = time.monotonic()
    poller.poll()
    assert time.monotonic() - begun < 4
    assert (db.job(job)["state"], db.job(job)["result"]) == ("succeeded", "left a daemon")
    assert not alive(int((tmp_path / "pid").read_text()))
    (line,) = poller.events("orphans_killed")
    assert line["processes"] == 1


def test_what_a_running_attempt_left_to_itself_is_spared_when_its_neighbour_ends(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    """An orphan belongs to the attempt in whose session it is."""
    poller.kind(
        "work",
        """
        import subprocess, time
        from pathlib import Path

        def run(job):
            pid, over = Path(job.payload["pid"]), Path(job.payload["over"])
            if job.payload["first"]:
                while not pid.exists() or not pid.read_text():
                    time.sleep(0.001)
                over.touch()
                return None
            subprocess.run(["sh", "-c", f"sleep 60 > /dev/null 2>&1 & echo $! > {pid}"])
            while not over.exists():
                time.sleep(0.001)
            time.sleep(0.3)
            return Path(f"/proc/{int(pid.read_text())}/stat").read_text().split()[2]
        """,
        children=2,
        memory_mb=1024,
        timeout=5,
    )
    payload = {"pid": str(tmp_path / "pid"), "over": str(tmp_path / "over")}
    db.enqueue("work", payload | {"first": True})
    job = db.enqueue("work", payload | {"first": False}).job_id or 0
    poller.poll()
    assert db.job(job)["result"] == "S"
    assert not alive(int((tmp_path / "pid").read_text()))


def test_what_an_import_did_to_signals_does_not_reach_a_child(db: Database, poller: RealPoller) -> None:
    """A blocked or ignored SIGALRM would take away the backstop of the timeout."""
    poller.kind(
        "work",
        """
        import gc, signal
        for number in (signal.SIGTERM, signal.SIGALRM, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGALRM, signal.SIGUSR1])

        def run(job):
            handled = [number for number in signal.valid_signals() if signal.getsignal(number) is signal.SIG_IGN]
            blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [])
            return {"ignored": handled, "blocked": list(blocked), "frozen": gc.get_freeze_count() > 10_000}
        """,
    )
    job = db.enqueue("work").job_id or 0
    poller.poll()
    ignored_by_python = [signal.SIGPIPE, signal.SIGXFSZ]
    assert db.job(job)["result"] == {"ignored": ignored_by_python, "blocked": [], "frozen": True}


def test_an_alarm_that_a_handler_set_itself_is_not_called_its_timeout(db: Database, poller: RealPoller) -> None:
    poller.kind(
        "work", "import signal, time\ndef run(job):\n    signal.setitimer(signal.ITIMER_REAL, 0.2)\n    time.sleep(9)"
    )
    job = db.enqueue("work").job_id or 0
    poller.poll()
    (attempt,) = db.attempts(job)
    assert (attempt["outcome"], attempt["error_class"]) == ("crashed", "SIGALRM")


def test_an_attempt_ends_in_time_also_while_the_supervisor_waits_for_the_database(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    poller.kind(
        "work",
        """
        import time
        from pathlib import Path

        def run(job):
            if job.payload["asks"]:
                job.save_checkpoint({})
                return None
            Path(job.payload["mark"]).touch()
            time.sleep(60)
        """,
        children=2,
        memory_mb=1024,
        timeout=0.5,
    )
    mark = tmp_path / "mark"
    asks = db.enqueue("work", {"asks": True}).job_id or 0
    hangs = db.enqueue("work", {"asks": False, "mark": str(mark)}).job_id or 0
    db.admin.autocommit = False
    db.admin.execute("select from stopline.job_data where job_id = %s for update", [asks])
    with in_background(poller.poll):
        until(mark.exists, "the other attempt has begun")
        time.sleep(3)
        db.admin.commit()
    (attempt,) = db.attempts(hangs)
    assert (attempt["outcome"], attempt["error_class"]) == ("timeout", "Timeout")


def test_ten_megabytes_of_output_are_drained_and_bounded_in_the_log(db: Database, poller: RealPoller) -> None:
    poller.kind(
        "loud",
        """
        import sys

        def run(job):
            for _ in range(10):
                sys.stdout.write("x" * 1024 * 1024)
            print("the end")
            return "said"
        """,
    )
    job = db.enqueue("loud").job_id or 0
    poller.poll()
    assert db.job(job)["result"] == "said"
    lines = poller.events("output")
    assert sum(len(line["text"]) for line in lines) <= 64 * 1024
    assert all(line["job"] == job and line["stream"] == "stdout" for line in lines)
    (cut,) = poller.events("output_cut")
    assert cut["dropped_bytes"] > 10_000_000
    assert all(len(line) < 16 * 1024 for line in poller.function.log)


def test_what_a_child_prints_and_logs_comes_out_as_lines_with_kind_job_and_stream(
    db: Database, poller: RealPoller
) -> None:
    poller.kind(
        "talks",
        """
        import logging, sys

        def run(job):
            print("to stdout")
            print('{"message": "looks like ours"}')
            logging.getLogger("a.library").warning("to the log")
            sys.stderr.write("no newline")
        """,
    )
    job = db.enqueue("talks").job_id
    poller.poll()
    seen = {(line["stream"], line["text"]) for line in poller.events("output") if line["job"] == job}
    assert seen == {
        ("stdout", "to stdout"),
        ("stdout", '{"message": "looks like ours"}'),
        ("stderr", "to the log"),
        ("stderr", "no newline"),
    }


def test_a_child_cannot_reach_the_queues_connection_and_no_transaction_is_open_while_it_runs(
    db: Database, poller: RealPoller
) -> None:
    """CO-02, CO-12: the queue's session is idle, not idle in a transaction; its object in the child leads nowhere."""
    poller.kind(
        "curious",
        """
        import gc, os, psycopg

        def run(job):
            tried = []
            for found in [thing for thing in gc.get_objects() + [*referred()] if isinstance(thing, psycopg.Connection)]:
                try:
                    tried.append(str(found.execute("select 1").fetchall()))
                except psycopg.Error as error:
                    tried.append(type(error).__name__)
            sockets = [name for name in os.listdir("/proc/self/fd") if is_socket(name)]
            with psycopg.connect(**job.payload) as watcher:
                states = watcher.execute(
                    "select state from pg_stat_activity where datname = current_database() "
                    "and application_name = 'stopline-poller'"
                ).fetchall()
            return {"tried": tried, "sockets": len(sockets), "states": states}

        def referred():
            # gc.freeze() hides objects from gc.get_objects(); the poller's module still names its session.
            import sys
            poller = sys.modules["handler"]._poller()
            return [poller.session._conn]

        def is_socket(name):
            try:
                return os.readlink(f"/proc/self/fd/{name}").startswith("socket:")
            except OSError:
                return False
        """,
    )
    place = db.target("postgres")
    watcher = {"host": place.host, "port": place.port, "dbname": place.dbname, "user": "postgres"}
    first, second = (db.enqueue("curious", watcher).job_id or 0 for _ in range(2))
    line = poller.poll()
    for job in (first, second):
        result = db.job(job)["result"]
        assert set(result["tried"]) <= {"OperationalError", "InterfaceError"}
        assert result["tried"]
        assert result["states"] == [["idle"]]
        assert result["sockets"] == 1  # its channel
    assert line["reconnects"] == 0


def test_a_warm_poller_keeps_no_descriptor_of_its_attempts(db: Database, poller: RealPoller) -> None:
    poller.kind("work", "def run(job): return None", children=3, memory_mb=1024)
    db.enqueue("work")
    poller.poll()
    before = sorted(os.listdir(f"/proc/{poller.function.pid}/fd"))
    for _ in range(20):
        db.enqueue("work")
    assert poller.poll()["kinds"]["work"]["outcomes"] == {"succeeded": 20}
    assert sorted(os.listdir(f"/proc/{poller.function.pid}/fd")) == before


def test_a_kind_that_lets_the_kernel_reap_children_does_not_lose_how_they_ended(
    db: Database, poller: RealPoller
) -> None:
    source = "import os, signal\nsignal.signal(signal.SIGCHLD, signal.SIG_IGN)\ndef run(job): os._exit(4)"
    poller.kind("work", source)
    job = db.enqueue("work").job_id or 0
    poller.poll()
    assert db.job(job)["last_error_class"] == "ExitStatus4"


def test_a_secret_that_a_job_prints_or_dies_with_reaches_neither_log_nor_database(
    db: Database, poller: RealPoller
) -> None:
    """CO-10: output is cleaned like every error text."""
    poller.kind(
        "work",
        """
        import os

        def run(job):
            print("connecting to postgresql://app:Sup3rSecret@db/x with", job.environment["KEY_NAME"], flush=True)
            job.cost("password=Sup3rSecret")
            os.write(2, b"password=Sup3rSecret host=db")
            os._exit(1)
        """,
    )
    job = db.enqueue("work").job_id or 0
    function = poller.start(KEY_NAME="wJalrXUtnFEMIexamplekey", AWS_SECRET_ACCESS_KEY="wJalrXUtnFEMIexamplekey")
    function.invoke({})
    seen = "\n".join([*function.log, str(db.job(job)), str(db.attempts(job))])
    assert "connecting to" in seen
    assert [secret for secret in ("Sup3rSecret", "wJalrXUtnFEMI") if secret in seen] == []


def test_a_kind_that_starts_a_thread_while_it_is_imported_claims_nothing_and_fails_the_invocation_by_name(
    db: Database, poller: RealPoller
) -> None:
    poller.kind(
        "threads",
        """
        import threading
        threading.Thread(target=threading.Event().wait, daemon=True, name="telemetry").start()

        def run(job):
            return None
        """,
    )
    job = db.enqueue("threads").job_id or 0
    with pytest.raises(
        FunctionFailed, match=r"PollFailed: kind threads: this process has 2 threads \(MainThread, telemetry\)"
    ):
        poller.poll()
    assert (db.job(job)["state"], db.job(job)["attempts"]) == ("pending", 0)


def test_children_that_would_have_no_memory_are_refused_before_anything_is_claimed(
    db: Database, poller: RealPoller
) -> None:
    poller.kind("tight", "def run(job): return None", memory_mb=128, children=8)
    job = db.enqueue("tight").job_id or 0
    with pytest.raises(
        FunctionFailed, match=r"kind tight: \[run\] memory_mb 128 shared by 8 children leaves each 16 MiB"
    ):
        poller.poll()
    assert (db.job(job)["state"], db.job(job)["attempts"]) == ("pending", 0)


def test_children_die_with_their_supervisor_also_when_it_is_killed(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    poller.kind(
        "long",
        """
        import os, time
        from pathlib import Path

        def run(job):
            Path(job.payload["pid"]).write_text(str(os.getpid()))
            while True:
                time.sleep(60)
        """,
        timeout=10,
    )
    mark = tmp_path / "pid"
    db.enqueue("long", {"pid": str(mark)})
    with in_background(poller.poll) as invocation:
        until(lambda: mark.exists() and mark.read_text() != "", "the child has begun")
        pid = poller.function.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    assert isinstance(invocation.exception(), FunctionFailed)
    child = int(mark.read_text())
    until(lambda: not alive(child), "the child is dead")


def test_several_children_run_at_once_and_only_as_many_jobs_are_claimed_as_can_be_started(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    """CL-05: a job that waits for a free child is not claimed, so its lease and attempt do not run."""
    poller.kind(
        "meets",
        """
        import time
        from pathlib import Path

        def run(job):
            Path(job.payload["mine"]).touch()
            while not Path(job.payload["other"]).exists():
                time.sleep(0.001)
            import psycopg
            with psycopg.connect(**job.payload["db"]) as watcher:
                return watcher.execute("select count(*) from stopline.job where state = 'claimed'").fetchone()[0]
        """,
        children=2,
        memory_mb=1024,
    )
    place = db.target("postgres")
    watcher = {"host": place.host, "port": place.port, "dbname": place.dbname, "user": "postgres"}
    names = [("a", "b"), ("b", "a"), ("c", "d"), ("d", "c")]
    jobs = [
        db.enqueue("meets", {"mine": str(tmp_path / mine), "other": str(tmp_path / other), "db": watcher}).job_id or 0
        for mine, other in names
    ]
    poller.poll()
    rows = [db.job(job) for job in jobs]
    assert {row["state"] for row in rows} == {"succeeded"}
    assert all(row["result"] <= 2 for row in rows)
