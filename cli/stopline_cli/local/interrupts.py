"""Ctrl-C and the polite signals as something to ask about: an exception could strike between a claim and its lock."""

import signal
import time
from types import FrameType
from typing import Self

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SAME_SECONDS = 0.5
"""Signals this close together are one wish: a terminal and a wrapper may both deliver it."""


class Interrupts:
    """Counts interrupts while it is entered. The signals' former meaning comes back when it is left."""

    def __init__(self) -> None:
        self.count = 0
        self._last = float("-inf")

    def __enter__(self) -> Self:
        self._former = {number: signal.signal(number, self._note) for number in SIGNALS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._former.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        if now - self._last > SAME_SECONDS:
            self.count += 1
        self._last = now
