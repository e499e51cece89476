"""A stand-in as a process of its own: what runs inside it, and the handle that a driver holds outside."""

import argparse
import json
import subprocess
import sys
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from stopline_cli.standins.server import StandIn
from stopline_cli.standins.service import Service

_SECONDS_TO_STOP = 5.0


def main(service: Service) -> None:
    """Serve until standard input is closed, which is what happens when the parent ends, however it ends.

    Prints one JSON line {"port": n} once requests are answered.
    """
    parser = argparse.ArgumentParser(description="A stand-in for an outside service, on loopback.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1 (default: a free one)")
    parser.add_argument("--script", type=Path, help="JSON file with the script of faults")
    options = parser.parse_args()
    if options.script:
        service.script.replace(json.loads(options.script.read_text(encoding="utf-8")))
    with StandIn(service, options.port) as standin:
        print(json.dumps({"port": standin.port}), flush=True)
        try:
            sys.stdin.buffer.read()
        except KeyboardInterrupt:
            return


class StandInProcess:
    """A stand-in started as a child process. `name` is "bedrock" or "connector".

    Leave through stop() or a with block; if this process dies instead, the child ends by itself.
    """

    def __init__(self, name: str, environment: dict[str, str] | None = None) -> None:
        command = [sys.executable, "-m", f"stopline_cli.standins.{name}", "--port", "0"]
        # A session of its own: Ctrl-C in a terminal reaches the driver, which then stops its children in order.
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
        )
        assert self._process.stdout is not None
        ready = self._process.stdout.readline()
        if not ready:
            raise RuntimeError(f"the stand-in {name} ended with status {self._process.wait()} before it was ready")
        self.url = f"http://127.0.0.1:{json.loads(ready)['port']}"

    def script(self, steps: dict[str, list[dict[str, object]]]) -> None:
        """Replace the script of faults (see standins/script.py)."""
        self._ask("PUT", "/_script", steps)

    def calls(self) -> dict[str, Any]:
        """What it has received so far (see standins/ledger.py)."""
        return self._ask("GET", "/_calls")

    def reset(self) -> None:
        """Forget calls and effects and start the script again."""
        self._ask("POST", "/_reset")

    def stop(self) -> None:
        """End the process and wait for it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(_SECONDS_TO_STOP)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()

    def _ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data=data, method=method)
        # The environment may name a proxy, which cannot reach this machine's loopback.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=10) as response:
            answer: dict[str, Any] = json.load(response)
            return answer

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.stop()
