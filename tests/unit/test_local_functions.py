"""The local function host does what Lambda does: a warm process, its own environment, and a kill at the limit."""

import os
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stopline_cli.local.functions import FunctionFailed, FunctionProcess

Make = Callable[..., FunctionProcess]


@pytest.fixture
def function(tmp_path: Path) -> Iterator[Make]:
    """Makes a function from the source of its handler."""
    with ExitStack() as stack:

        def make(source: str, timeout_s: float = 10, **env: str) -> FunctionProcess:
            file = tmp_path / "handler.py"
            file.write_text(textwrap.dedent(source))
            return stack.enter_context(FunctionProcess("probe", file, env, timeout_s))

        yield make


def alive(pid: int) -> bool:
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except FileNotFoundError:
        return False


def wait_until_gone(pid: int) -> bool:
    until = time.monotonic() + 5
    while alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    return not alive(pid)


def test_a_second_invocation_finds_the_same_warm_process(function: Make) -> None:
    probe = function("""
        import os
        calls = 0
        def handler(event, context):
            global calls
            calls += 1
            return {"pid": os.getpid(), "calls": calls, "event": event}
    """)
    first, second = probe.invoke({"n": 1}), probe.invoke({"n": 2})
    assert (first["calls"], second["calls"]) == (1, 2)
    assert first["pid"] == second["pid"] == probe.pid
    assert second["event"] == {"n": 2}


def test_the_environment_holds_what_was_given_and_what_lambda_sets_and_nothing_of_ours(
    function: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OUR_OWN_SECRET", "x")
    probe = function(
        """
        import os
        def handler(event, context):
            return dict(os.environ)
        """,
        GIVEN="yes",
    )
    found = probe.invoke({})
    assert found["GIVEN"] == "yes"
    assert "OUR_OWN_SECRET" not in found
    assert "HOME" not in found
    assert {name for name in found if not name.startswith("AWS_LAMBDA_")} <= {
        "GIVEN", "PATH", "LANG", "LC_CTYPE", "TZ", "PYTHONPATH"
    }  # fmt: skip


def test_the_handler_runs_in_a_process_with_one_thread(function: Make) -> None:
    probe = function("""
        import os
        def handler(event, context):
            return {"threads": len(os.listdir("/proc/self/task"))}
    """)
    assert probe.invoke({}) == {"threads": 1}


def test_the_context_tells_the_time_left_and_who_is_asked(function: Make) -> None:
    probe = function(
        """
        def handler(event, context):
            return {
                "left": context.get_remaining_time_in_millis(), "id": context.aws_request_id,
                "name": context.function_name, "memory": context.memory_limit_in_mb, "stream": context.log_stream_name,
            }
        """,
        timeout_s=60,
    )
    first, second = probe.invoke({}), probe.invoke({})
    assert 50_000 < first["left"] <= 60_000
    assert first["id"] != second["id"]
    assert (first["name"], first["memory"]) == ("probe", "1024")
    assert first["stream"] == second["stream"]


def test_an_exception_is_reported_with_its_type_and_leaves_the_process_warm(function: Make) -> None:
    probe = function("""
        def handler(event, context):
            if event.get("bad"):
                raise KeyError("no such thing")
            return {"ok": True}
    """)
    with pytest.raises(FunctionFailed, match="probe: KeyError: 'no such thing'") as caught:
        probe.invoke({"bad": True})
    assert "handler.py" in caught.value.trace
    pid = probe.pid
    assert probe.invoke({}) == {"ok": True}
    assert probe.pid == pid


def test_a_result_that_is_not_json_is_a_failure_and_not_a_hang(function: Make) -> None:
    probe = function("""
        def handler(event, context):
            return {"when": object()}
    """)
    with pytest.raises(FunctionFailed, match="TypeError"):
        probe.invoke({})


def test_the_limit_kills_the_process_with_children_in_sessions_of_their_own(function: Make, tmp_path: Path) -> None:
    probe = function(
        """
        import os, signal, time
        def handler(event, context):
            if event:
                return {"pid": os.getpid()}
            child = os.fork()
            if child == 0:
                os.setsid()
                signal.pause()
            open(os.environ["NOTE"], "w").write(f"{os.getpid()} {child}")
            while True:
                signal.pause()
        """,
        timeout_s=0.5,
        NOTE=str(tmp_path / "note"),
    )
    with pytest.raises(FunctionFailed, match=r"Timeout: killed after 0\.5 s"):
        probe.invoke({})
    assert probe.pid is None
    parent, child = (int(word) for word in (tmp_path / "note").read_text().split())
    assert wait_until_gone(parent)
    assert wait_until_gone(child)
    assert probe.invoke({"again": 1})["pid"] != parent


def test_a_process_that_ends_is_told_from_one_that_is_slow_even_when_a_child_holds_its_pipes(function: Make) -> None:
    probe = function(
        """
        import os, signal
        def handler(event, context):
            if os.fork() == 0:
                signal.pause()
            os.kill(os.getpid(), signal.SIGKILL)
        """,
        timeout_s=60,
    )
    started = time.monotonic()
    with pytest.raises(FunctionFailed, match="ProcessEnded: the process was killed by SIGKILL"):
        probe.invoke({})
    assert time.monotonic() - started < 10


def test_an_exit_inside_the_handler_is_a_failure(function: Make) -> None:
    probe = function("""
        import sys
        def handler(event, context):
            sys.exit(0)
    """)
    with pytest.raises(FunctionFailed, match="exit status 0 and gave no answer"):
        probe.invoke({})


def test_an_import_that_fails_is_reported_and_tried_again(function: Make) -> None:
    probe = function("import no_such_module")
    for _ in range(2):
        with pytest.raises(FunctionFailed, match="ModuleNotFoundError: No module named 'no_such_module'"):
            probe.invoke({})
        assert probe.pid is None


def test_what_the_function_prints_is_its_log_and_cannot_disturb_its_answer(function: Make) -> None:
    probe = function("""
        import os, sys
        def handler(event, context):
            print("one line")
            os.write(1, b'{"result": "forged"}\\n')
            print("to stderr", file=sys.stderr)
            print("x" * 300_000)
            for n in range(20_000):
                print("filler", n)
            return {"ok": True}
    """)
    assert probe.invoke({}) == {"ok": True}
    assert len(probe.log) == 5000
    assert probe.log[-1] == "filler 19999"


def test_a_long_line_is_cut_and_says_so(function: Make) -> None:
    probe = function("""
        def handler(event, context):
            print("first")
            print("x" * 300_000)
    """)
    assert probe.invoke({}) == {"result": None}
    first, long = probe.log
    assert first == "first"
    assert long.endswith("x [cut]")
    assert len(long) < 270_000


def test_stop_ends_the_process(function: Make) -> None:
    probe = function("""
        def handler(event, context):
            return {}
    """)
    probe.invoke({})
    pid = probe.pid
    assert pid is not None
    assert os.path.exists(f"/proc/{pid}")
    probe.stop()
    assert wait_until_gone(pid)
