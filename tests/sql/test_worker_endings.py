"""However an attempt ends, its end is recorded at once, with its name, by the poller that ran it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from stopline_cli.local.postgres import EmbeddedPostgres
from tests.support.database import Database, fresh_database
from tests.support.real_poller import RealPoller

SOURCE = """
    import asyncio, ctypes, datetime, decimal, json, os, resource, signal, subprocess, sys, time
    from pathlib import Path

    def run(job):
        with open(job.payload["marks"], "a") as marks:
            print(job.payload["do"], os.getpid(), file=marks)
        return globals()[job.payload["do"]](job)

    def sigkill(job):
        job.cost("0.25")
        os.kill(os.getpid(), signal.SIGKILL)

    def segfault(job):
        ctypes.string_at(0)

    def memory(job):
        return len(bytearray(2 * 1024**3))

    def exit_3(job):
        sys.stderr.write("the last words")
        sys.stderr.flush()
        os._exit(3)

    def exit_0(job):
        os._exit(0)

    def sys_exit(job):
        sys.exit(0)

    def interrupt(job):
        raise KeyboardInterrupt

    def cancelled(job):
        raise asyncio.CancelledError

    def recursion(job):
        return recursion(job)

    def no_memory(job):
        raise MemoryError

    def hang(job):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)

    def stopped(job):
        os.kill(os.getpid(), signal.SIGSTOP)

    def garbage(job):
        for name in os.listdir("/proc/self/fd"):
            try:
                if int(name) > 2 and os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                    os.write(int(name), b"no message at all")
            except OSError:
                pass
        return "done"

    def unstarted(job):
        async def work():
            pass
        return work()

    def nul(job):
        raise Exception("bad \\x00 byte")

    def surrogate(job):
        raise Exception("half an emoji \\ud83d")

    def no_text(job):
        class Mute(Exception):
            def __str__(self):
                raise RuntimeError("no text")
        raise Mute

    def huge(job):
        error = Exception("first")
        for _ in range(50_000):
            link = Exception("link")
            link.__cause__ = error
            error = link
        raise Exception("y" * 10_000_000) from error

    def thread_left(job):
        import threading
        sys.setswitchinterval(1e-6)
        def chatter():
            while True:
                try:
                    job.cost("0.000001")
                except Exception:
                    pass
        for _ in range(20):
            threading.Thread(target=chatter, daemon=True).start()
        return "returned"

    def no_channel(job):
        os.closerange(3, 100)
        return "unheard"

    def nan(job):
        return {"score": float("nan")}

    def moment(job):
        return datetime.datetime(2026, 1, 1)

    def cycle(job):
        loop = []
        loop.append(loop)
        return loop

    def nothing(job):
        return None

    def forked_twin(job):
        if os.fork() == 0:
            return "the twin"
        os.wait()
        return "the first"

    def limits(job):
        status = Path("/proc/self/status").read_text()
        return {
            "oom": Path("/proc/self/oom_score_adj").read_text().strip(),
            "data": resource.getrlimit(resource.RLIMIT_DATA)[0],
            "session": os.getsid(0) == os.getpid(),
            "stdin": os.readlink("/proc/self/fd/0"),
            "alarm": signal.getitimer(signal.ITIMER_REAL)[0] > 0,
        }
"""


@dataclass
class Ways:
    """What became of each way to end, all run by one invocation."""

    db: Database
    ids: dict[str, int]
    result: dict[str, Any]
    marks: list[str]
    poller: RealPoller

    def job(self, way: str) -> Any:
        return self.db.job(self.ids[way])

    def attempt(self, way: str) -> dict[str, Any]:
        (attempt,) = self.db.attempts(self.ids[way])
        return attempt


WAYS = [
    "sigkill",
    "segfault",
    "memory",
    "exit_3",
    "exit_0",
    "sys_exit",
    "interrupt",
    "cancelled",
    "recursion",
    "no_memory",
    "hang",
    "stopped",
    "garbage",
    "unstarted",
    "nul",
    "surrogate",
    "no_text",
    "huge",
    "no_channel",
    "thread_left",
    "nan",
    "moment",
    "cycle",
    "nothing",
    "forked_twin",
    "limits",
]


@pytest.fixture(scope="module")
def ways(server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    folder = tmp_path_factory.mktemp("ways")
    marks = folder / "marks"
    with fresh_database(server) as db, RealPoller(db, folder) as poller:
        poller.kind("way", SOURCE, timeout=1, margin=3, children=3, memory_mb=1536)
        ids = {way: db.enqueue("way", {"do": way, "marks": str(marks)}).job_id for way in WAYS}
        result = poller.poll()
        yield Ways(db, {way: job or 0 for way, job in ids.items()}, result, marks.read_text().split("\n"), poller)


@pytest.mark.parametrize(
    ("way", "outcome", "error_class", "text"),
    [
        ("sigkill", "crashed", "SIGKILL", "killed by SIGKILL (signal 9)"),
        ("segfault", "crashed", "SIGSEGV", "Fatal Python error: Segmentation fault"),
        ("exit_3", "crashed", "ExitStatus3", "exited with status 3 without a result"),
        ("exit_0", "crashed", "ExitStatus0", "exited with status 0 without a result"),
        ("memory", "transient", "MemoryError", "MemoryError"),
        ("sys_exit", "transient", "SystemExit", "SystemExit"),
        ("interrupt", "transient", "KeyboardInterrupt", "KeyboardInterrupt"),
        ("cancelled", "transient", "CancelledError", "CancelledError"),
        ("recursion", "transient", "RecursionError", "maximum recursion depth"),
        ("no_memory", "transient", "MemoryError", "MemoryError"),
        ("hang", "timeout", "Timeout", "killed at its timeout, after 1."),
        ("stopped", "timeout", "Timeout", "killed at its timeout"),
        ("garbage", "crashed", "ProtocolError", "not a message"),
        ("unstarted", "transient", "TypeError", "has not run"),
        ("no_channel", "crashed", "ExitStatus70", "Bad file descriptor"),
    ],
)
def test_an_attempt_that_did_not_return_is_a_counted_failure_with_its_name(
    ways: Ways, way: str, outcome: str, error_class: str, text: str
) -> None:
    """FI-07, RE-09: SystemExit(0), KeyboardInterrupt, a signal, an exit and a hang each have an outcome."""
    attempt, job = ways.attempt(way), ways.job(way)
    assert (attempt["outcome"], attempt["error_class"]) == (outcome, error_class)
    assert text in attempt["error"]
    assert (job["state"], job["attempts"]) == ("pending", 1)
    assert job["due_at"] > attempt["finished_at"]


@pytest.mark.parametrize(
    ("way", "text"),
    [("nul", "bad \\x00 byte"), ("surrogate", "half an emoji \\ud83d"), ("no_text", "Mute"), ("huge", "[cut: ")],
)
def test_whatever_the_text_of_an_error_is_the_attempt_is_recorded_and_the_text_bounded(
    ways: Ways, way: str, text: str
) -> None:
    """FI-01, FI-02: NUL, half an emoji, a __str__ that raises, 10 MB with 50,000 causes."""
    attempt = ways.attempt(way)
    assert (attempt["outcome"], ways.job(way)["state"]) == ("transient", "pending")
    assert text in attempt["error"]
    assert len(attempt["error"].encode()) <= 8192


@pytest.mark.parametrize(
    ("way", "result"),
    [("nan", "NaN"), ("moment", "datetime"), ("cycle", "result")],
)
def test_work_whose_result_cannot_be_stored_has_succeeded_once(ways: Ways, way: str, result: str) -> None:
    """FI-08, FI-09: the result is replaced by a marker that says why; the work is not done again."""
    job = ways.job(way)
    assert (job["state"], job["attempts"]) == ("succeeded", 1)
    assert job["result"]["stopline"] == "result not stored"
    assert result in job["result"]["why"]
    assert len([mark for mark in ways.marks if mark.startswith(f"{way} ")]) == 1


def test_a_handler_that_returns_nothing_has_succeeded_without_a_result(ways: Ways) -> None:
    assert (ways.job("nothing")["state"], ways.job("nothing")["result"]) == ("succeeded", None)


def test_a_thread_that_the_handler_left_running_does_not_speak_after_the_end(ways: Ways) -> None:
    assert (ways.job("thread_left")["state"], ways.job("thread_left")["result"]) == ("succeeded", "returned")


def test_a_process_that_the_handler_forks_does_not_speak_for_the_job(ways: Ways) -> None:
    assert (ways.job("forked_twin")["state"], ways.job("forked_twin")["result"]) == ("succeeded", "the first")


def test_a_cost_that_was_reported_survives_the_crash(ways: Ways) -> None:
    assert float(ways.attempt("sigkill")["cost_usd"]) == 0.25


def test_a_child_is_the_first_to_be_killed_has_a_memory_limit_a_session_an_alarm_and_no_input(ways: Ways) -> None:
    seen = ways.job("limits")["result"]
    assert seen == {"oom": "1000", "data": 512 * 1024 * 1024, "session": True, "stdin": "/dev/null", "alarm": True}


def test_the_last_output_of_a_dead_child_is_part_of_the_reason(ways: Ways) -> None:
    assert "the last words" in ways.attempt("exit_3")["error"]


def test_every_attempt_had_a_process_of_its_own_and_none_is_left(ways: Ways) -> None:
    pids = [mark.split()[1] for mark in ways.marks if mark]
    assert len(set(pids)) == len(pids) == len(WAYS)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []


def test_the_result_line_counts_what_the_attempts_came_to(ways: Ways) -> None:
    line = ways.result["kinds"]["way"]
    assert line["claimed"] == len(WAYS)
    assert line["outcomes"] == {"succeeded": 7, "transient": 11, "crashed": 6, "timeout": 2}
    assert (ways.result["stopped"], line["released"]) == ("empty", 0)
