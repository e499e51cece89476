"""What a child wrote to stdout and stderr: passed on line by line as it comes, cleaned and bounded.

A text is cleaned before it is cut: half a secret is not recognised.
"""

import re
from collections.abc import Callable

from stopline.errortext import clean
from stopline.redact import LONGEST_SECRET, redact

OUTPUT_BYTES = 64 * 1024
"""What is passed on of one stream in one attempt."""
LINE_CHARS = 2048
TAIL_BYTES = 4000

_KEPT_BYTES = TAIL_BYTES + LONGEST_SECRET
_KEY_EDGE = re.compile(rb"-----(BEGIN|END) [A-Z ]{0,40}PRIVATE KEY-----")


class Stream:
    """One stream of one attempt. `emit` is called with every line that is passed on, long ones in pieces."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._pending = b""
        self._room = OUTPUT_BYTES
        self._tail = b""
        self._in_key = False
        self.dropped = 0

    def feed(self, data: bytes) -> None:
        """Takes what was read from the pipe."""
        self._tail = (self._tail + data)[-_KEPT_BYTES:]
        taken = data[: self._room]
        self._room -= len(taken)
        self.dropped += len(data) - len(taken)
        *lines, self._pending = (self._pending + taken).split(b"\n")
        for line in lines:
            self._line(line)

    def close(self) -> None:
        """Passes on a last line that has no end."""
        self._line(self._pending)
        self._pending = b""

    @property
    def tail(self) -> str:
        """The last that was written, also beyond the bound."""
        text = redact(_decoded(self._tail))
        if len(self._tail) == _KEPT_BYTES:
            text = text[LONGEST_SECRET:]  # it may begin inside a secret
        return clean(text.encode()[-TAIL_BYTES:].decode("utf-8", "ignore")).strip()

    def _line(self, line: bytes) -> None:
        inside = self._in_key
        for edge in _KEY_EDGE.findall(line):
            self._in_key = edge == b"BEGIN"
        if inside:
            return
        text = redact(_decoded(line))
        for start in range(0, len(text), LINE_CHARS):
            self._emit(clean(text[start : start + LINE_CHARS]))


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", errors="backslashreplace")
