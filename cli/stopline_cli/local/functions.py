"""Runs a Lambda handler as a warm process of its own, with its own environment, the way the Lambda service would.

A separate process, because a poller forks: that is safe only in a process with one thread, which ours may not be.
"""

import json
import signal
import sys
import time
import uuid
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from stopline_cli.local.folders import CHECKOUT
from stopline_cli.local.warm import LOG_LINES, WarmProcess

HOST = Path(__file__).with_name("function_host.py")
LAYER = CHECKOUT / "layers" / "stopline" / "python"
INIT_SECONDS = 30.0
KILL_DELAY_SECONDS = 0.1
"""Lambda kills slightly after the limit, so a handler may see 0 ms left and still finish."""


class FunctionFailed(Exception):
    """An invocation ended without a result: the handler raised, or the process ended or was killed at its limit."""

    def __init__(self, name: str, error_type: str, message: str, trace: str = "") -> None:
        super().__init__(f"function {name}: {error_type}: {message}")
        self.name = name
        self.error_type = error_type
        self.message = message
        self.trace = trace


class FunctionProcess:
    """One function. The process starts at the first invocation and stays warm until it fails, times out or is stopped.

    `handler` is the file, relative to the checkout or absolute; `env` is all that its environment holds besides what
    Lambda itself sets; `timeout_s` is the limit of one invocation in seconds.
    """

    def __init__(
        self,
        name: str,
        handler: str | Path,
        env: Mapping[str, str],
        timeout_s: float,
        *,
        function: str = "handler",
        memory_mb: int = 1024,
    ) -> None:
        self.name = name
        self.timeout_s = timeout_s
        self._handler = CHECKOUT / handler
        self._function = function
        self._env = dict(env)
        self._memory_mb = memory_mb
        self._process: WarmProcess | None = None
        self._log: deque[str] = deque(maxlen=LOG_LINES)

    @property
    def pid(self) -> int | None:
        """The warm process, or None before the first invocation and after one that ended it."""
        return self._process.pid if self._process else None

    @property
    def log(self) -> list[str]:
        """The newest lines that the function wrote to stdout and stderr."""
        return list(self._log)

    def invoke(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Calls the handler with `event` and returns its result. Raises FunctionFailed."""
        if self._process is None:
            self._process = WarmProcess(self._command, self._environment(), self._log)
            self._exchange(None, INIT_SECONDS)
        request = {
            "event": dict(event),
            "request_id": str(uuid.uuid4()),
            "deadline": time.monotonic() + self.timeout_s,
        }
        result = self._exchange(json.dumps(request), self.timeout_s)
        return result if isinstance(result, dict) else {"result": result}

    def stop(self) -> None:
        """Ends the process and everything that it started."""
        if self._process is not None:
            self._process.end()
            self._process = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _command(self, requests: int, answers: int) -> list[str]:
        return [sys.executable, "-u", str(HOST), str(requests), str(answers), str(self._handler), self._function]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "LANG": "C.UTF-8",
            "TZ": ":UTC",
            "PYTHONPATH": str(LAYER),
            "AWS_LAMBDA_FUNCTION_NAME": self.name,
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(self._memory_mb),
            "AWS_LAMBDA_LOG_GROUP_NAME": f"/local/{self.name}",
            "AWS_LAMBDA_LOG_STREAM_NAME": f"{self.name}-{uuid.uuid4().hex[:12]}",
            **self._env,
        }

    def _exchange(self, request: str | None, seconds: float) -> Any:
        """Sends one line and returns the answer. A process that gives none is ended: the next call is a cold start."""
        assert self._process is not None
        answer = self._process.exchange(request, seconds + KILL_DELAY_SECONDS)
        if answer is not None and "error" not in answer:
            return answer["result"]
        if answer is None:
            status = self._process.kill()
            self._process = None
            if status is None:
                raise FunctionFailed(self.name, "Timeout", f"killed after {seconds:g} s, its limit")
            raise FunctionFailed(self.name, "ProcessEnded", _how_it_ended(status))
        if request is None:
            self.stop()
        error = answer["error"]
        raise FunctionFailed(self.name, error["type"], error["message"], error["trace"])


def _how_it_ended(status: int) -> str:
    """A process's exit status in words."""
    if status < 0:
        return f"the process was killed by {signal.Signals(-status).name}"
    return f"the process ended with exit status {status} and gave no answer"
