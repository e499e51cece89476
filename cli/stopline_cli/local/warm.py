"""The outside of a local function's process: its pipes, its log, and its end."""

import json
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

from stopline_cli.local.folders import CHECKOUT
from stopline_cli.local.processes import kill_tree

LOG_LINES = 5000
LINE_BYTES = 256 * 1024
"""The longest log line that is kept whole; CloudWatch's limit for one event."""
LOOK_SECONDS = 0.1
END_SECONDS = 2.0


class WarmProcess:
    """A process that answers lines on one pipe with lines on another. What it prints goes to `log`, line by line.

    `command` is given the two file descriptors, as numbers, that the process reads requests from and answers on.
    """

    def __init__(
        self, command: Callable[[int, int], list[str]], environment: Mapping[str, str], log: deque[str]
    ) -> None:
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._output, output = os.pipe()
        try:
            self._popen = subprocess.Popen(
                command(requests, answers),
                env=dict(environment),
                cwd=CHECKOUT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(requests, answers),
                start_new_session=True,
            )
        finally:
            for fd in (requests, answers, output):
                os.close(fd)
        for fd in (self._answers, self._output):
            os.set_blocking(fd, False)
        self._log = log
        self._partial = b""

    @property
    def pid(self) -> int:
        return self._popen.pid

    def exchange(self, request: str | None, seconds: float) -> dict[str, Any] | None:
        """Sends one request, if any, and returns the next answer; None when the process ended or the time is over."""
        until = time.monotonic() + seconds
        if request is not None and not self._send(request.encode() + b"\n"):
            return None
        answer = b""
        with selectors.DefaultSelector() as pipes:
            pipes.register(self._answers, selectors.EVENT_READ)
            pipes.register(self._output, selectors.EVENT_READ)
            while not answer.endswith(b"\n"):
                # Whether it still runs is asked before looking, so that its last words are not missed. The end of a
                # pipe would not tell: a child of the handler may hold it open.
                ended = self._popen.poll() is not None
                left = until - time.monotonic()
                ready = {key.fd for key, _ in pipes.select(max(0.0, min(left, LOOK_SECONDS)))}
                if self._output in ready and not self._read_output():
                    pipes.unregister(self._output)
                part = _read(self._answers) if self._answers in ready else None
                if part:
                    answer += part
                elif ended or left <= 0:
                    return None
                elif part == b"":
                    pipes.unregister(self._answers)
        self._read_output()
        parsed: dict[str, Any] = json.loads(answer)
        return parsed

    def kill(self) -> int | None:
        """Ends it at once with all that it started. Returns its exit status if it had ended by itself, else None."""
        status = self._popen.poll()
        if status is None:
            kill_tree(self._popen.pid)
            self._popen.wait()
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._popen.pid, signal.SIGKILL)
        self._close()
        return status

    def end(self) -> None:
        """Lets it end by closing its requests, and kills it when it does not."""
        os.close(self._requests)
        self._requests = -1
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(END_SECONDS)
        self.kill()

    def _send(self, data: bytes) -> bool:
        try:
            while data:
                data = data[os.write(self._requests, data) :]
        except BrokenPipeError:
            return False
        return True

    def _read_output(self) -> bool:
        """Moves what was printed to the log. False at the end of the pipe."""
        while data := _read(self._output):
            *lines, self._partial = (self._partial + data).split(b"\n")
            self._log.extend(_text(line) for line in lines)
            self._partial = self._partial[: LINE_BYTES + 1]
        return data is None

    def _close(self) -> None:
        self._read_output()
        if self._partial:
            self._log.append(_text(self._partial))
        for fd in (self._requests, self._answers, self._output):
            if fd >= 0:
                os.close(fd)


def _read(fd: int) -> bytes | None:
    """What is there now: None when nothing is, b"" at the end."""
    try:
        return os.read(fd, 65536)
    except BlockingIOError:
        return None


def _text(line: bytes) -> str:
    mark = " [cut]" if len(line) > LINE_BYTES else ""
    return line[:LINE_BYTES].decode(errors="replace") + mark
