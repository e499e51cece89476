"""A real poller on a test's database: its own process, its own kinds, written by the test."""

import json
import textwrap
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

from stopline.policy.hooks import reconciles
from stopline_cli.local.functions import FunctionProcess
from tests.support.database import Database


class RealPoller:
    """Kinds are added first; the process starts at the first poll and then stays warm."""

    def __init__(self, db: Database, folder: Path, timeout_s: float = 20) -> None:
        self.db = db
        self._timeout_s = timeout_s
        self.jobs_dir = folder / "jobs"
        self.jobs_dir.mkdir(parents=True, exist_ok=True)
        self.kinds: list[str] = []
        self._stack = ExitStack()
        self._function: FunctionProcess | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def kind(self, name: str, source: str, **policy: object) -> None:
        """Writes the kind's handler.py and deploys its policy: 2 s an attempt unless told otherwise, and whether it
        reconciles by what the file defines."""
        folder = self.jobs_dir / name
        folder.mkdir(exist_ok=True)
        handler = folder / "handler.py"
        handler.write_text(textwrap.dedent(source), encoding="utf-8")
        defaults: dict[str, object] = {"timeout": 2, "margin": 4, "memory_mb": 512, "retry_base": 60, "retry_cap": 900}
        self.db.policy(name, **(defaults | {"reconciles": reconciles(handler)} | policy))
        if name not in self.kinds:
            self.kinds.append(name)

    def start(self, timeout_s: float = 20, **env: str) -> FunctionProcess:
        """A further process of this poller."""
        variables = {
            **self.db.environment("stopline_worker"),
            "STOPLINE_KINDS": ",".join(self.kinds),
            "STOPLINE_JOBS_DIR": str(self.jobs_dir),
            **env,
        }
        function = FunctionProcess("poller", "lambdas/poller/handler.py", variables, timeout_s)
        return self._stack.enter_context(function)

    @property
    def function(self) -> FunctionProcess:
        """The one process that `poll` uses."""
        if self._function is None:
            self._function = self.start(self._timeout_s)
        return self._function

    def poll(self, **event: object) -> dict[str, Any]:
        """One invocation; its result line."""
        return self.function.invoke(event)

    def events(self, message: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        return [line for line in map(_parsed, self.function.log) if line.get("message") == message]


def _parsed(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
