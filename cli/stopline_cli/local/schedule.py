"""Invokes functions again and again, each at its own interval, as the scheduler does in a deployment."""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from stopline_cli.local.functions import FunctionFailed, FunctionProcess
from stopline_cli.local.interrupts import Interrupts

LOOK_SECONDS = 0.1

Answer = dict[str, Any] | FunctionFailed


@dataclass(frozen=True, slots=True)
class Entry:
    """One function and how often it is started, in seconds. A run that takes longer delays the next, never overlaps."""

    function: FunctionProcess
    every_s: float


class Schedule:
    """Runs entries side by side, a thread each, until it is interrupted. `report` gets every answer, one at a time."""

    def __init__(self, entries: Sequence[Entry], report: Callable[[str, Answer], None]) -> None:
        self._report = report
        self._reporting = threading.Lock()
        self._stopping = threading.Event()
        self._threads = [threading.Thread(target=self._repeat, args=(entry,), daemon=True) for entry in entries]

    def run(self) -> bool:
        """Blocks until an interrupt, then until invocations under way have ended; a second interrupt stops waiting.
        Returns whether all of them ended."""
        with Interrupts() as interrupts:
            for thread in self._threads:
                thread.start()
            while not interrupts.count:
                time.sleep(LOOK_SECONDS)
            self._stopping.set()
            while interrupts.count < 2 and any(thread.is_alive() for thread in self._threads):
                time.sleep(LOOK_SECONDS)
        return not any(thread.is_alive() for thread in self._threads)

    def _repeat(self, entry: Entry) -> None:
        while not self._stopping.is_set():
            answer: Answer
            try:
                answer = entry.function.invoke({})
            except FunctionFailed as failed:
                answer = failed
            with self._reporting:
                self._report(entry.function.name, answer)
            self._stopping.wait(entry.every_s)
