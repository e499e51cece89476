"""One execution environment of a function: the official emulator, which starts Lambda's own Python runtime client."""

import http.client
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, Self

from stopline_cli.local.processes import children_of, kill_tree
from tests.e2e.harness.function import Function
from tests.e2e.harness.installed import installed
from tests.e2e.harness.log import Log

LAUNCH = Path(__file__).with_name("launch.py")
_INVOKE_PORT = 8080
_API_PORT = 9001
_START_SECONDS = 10.0
_ANSWER_SECONDS = 30.0
"""What an answer may take beyond the function's own timeout."""
_LOOK_SECONDS = 0.005


class InvocationFailed(Exception):
    """An invocation ended without a result. `error_type` is as Lambda names it: Runtime.ExitError, Sandbox.Timedout."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(f"{error_type}: {message}")
        self.error_type = error_type
        self.message = message


class Instance:
    """Starts at once, its runtime at the first invocation, and again at the next one after that died. Use it as a
    context manager: leaving kills everything in it.

    `group` is a memory cgroup that everything in it belongs to.
    """

    def __init__(self, function: Function, folder: Path, group: Path | None = None) -> None:
        self.function = function
        folder.mkdir(parents=True, exist_ok=True)
        self.log = Log(folder / "log.txt")
        tools = installed()
        self._host = _loopback_address()
        self._api = f"{self._host}:{_API_PORT}"
        path = os.pathsep.join(map(str, (function.layer / "python", tools / "runtime")))
        emulator = [
            str(tools / "emulator"),
            *("--runtime-interface-emulator-address", f"{self._host}:{_INVOKE_PORT}"),
            *("--runtime-api-address", self._api),
            # No site-packages: the function finds the standard library, the runtime's packages and what ships.
            *(sys.executable, "-S", "-s", "-m", "awslambdaric", function.handler),
        ]
        launch = [sys.executable, "-S", str(LAUNCH), str(group / "cgroup.procs") if group else "-"]
        with (folder / "log.txt").open("wb") as output:
            self._process = subprocess.Popen(
                [*launch, *emulator],
                env={**function.lambdas_own(), "PYTHONPATH": path, **function.environment},
                cwd=function.code,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def __enter__(self) -> Self:
        try:
            self._await_start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def invoke(self, event: object = None) -> Any:
        """One invocation; its result. Raises InvocationFailed. `event` is JSON text or a value, {} if not given."""
        body = event if isinstance(event, str) else json.dumps({} if event is None else event)
        status, answer = self._ask(body.encode())
        if answer.startswith("Task timed out"):
            raise InvocationFailed("Sandbox.Timedout", answer)
        result = json.loads(answer)
        if status != http.client.OK or (isinstance(result, dict) and {"errorType", "errorMessage"} <= result.keys()):
            raise InvocationFailed(str(result.get("errorType")), str(result.get("errorMessage")))
        return result

    @property
    def runtime_pid(self) -> int:
        """The warm process that runs the handler."""
        (pid,) = children_of(self._process.pid)
        return pid

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Stands still meanwhile, as an environment does between its invocations."""
        pids = self.processes()
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                os.kill(pid, signal.SIGCONT)

    def processes(self) -> list[int]:
        """Everything that runs inside: the runtime and what it started, wherever that went."""
        mark = f"AWS_LAMBDA_RUNTIME_API={self._api}".encode()
        found = []
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
        return sorted(found)

    def kill(self) -> None:
        """Ends the environment with everything in it."""
        kill_tree(self._process.pid)
        self._process.wait()
        for pid in self.processes():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def _await_start(self) -> None:
        until = time.monotonic() + _START_SECONDS
        while True:
            with suppress(OSError), closing(socket.create_connection((self._host, _INVOKE_PORT), 1)):
                return
            if self._process.poll() is not None or time.monotonic() > until:
                raise RuntimeError("the emulator did not start:\n" + "\n".join(self.log.everything[-20:]))
            time.sleep(_LOOK_SECONDS)

    def _ask(self, body: bytes) -> tuple[int, str]:
        seconds = self.function.timeout_s + _ANSWER_SECONDS
        with closing(http.client.HTTPConnection(self._host, _INVOKE_PORT, timeout=seconds)) as connection:
            connection.request("POST", "/2015-03-31/functions/function/invocations", body)
            response = connection.getresponse()
            return response.status, response.read().decode()


def _loopback_address() -> str:
    """An address of its own for each environment: a free port could be taken before the emulator listens on it."""
    return "127." + ".".join(str(1 + secrets.randbelow(254)) for _ in range(3))
