"""Kills the process of one attempt, the way the kernel does when memory runs out."""

import os
import signal
from contextlib import suppress

from stopline_cli.local.processes import children_of
from stopline_cli.standins.process import StandInProcess


class Killer:
    """Waits until a marker's call is at the stand-in without an answer, then kills the poller's only child.

    `pid` is the process that was killed. With several children nobody outside could tell which of them made the call.
    """

    def __init__(self, standin: StandInProcess, marker: str) -> None:
        self._standin = standin
        self._marker = marker
        self.pid: int | None = None

    def look(self, poller: int | None) -> int | None:
        """Kills if the moment has come, and returns whom. `poller` is the pid of the poller's process."""
        if self.pid is not None or poller is None or not self._waits():
            return None
        children = children_of(poller)
        if len(children) == 1:
            with suppress(ProcessLookupError):
                os.kill(children[0], signal.SIGKILL)
                self.pid = children[0]
        return self.pid

    def _waits(self) -> bool:
        calls = self._standin.calls()["calls"]
        return any(call["marker"] == self._marker and call["status"] is None for call in calls)
