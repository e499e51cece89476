"""What a child wrote to stdout and stderr: passed on line by line as it comes, cleaned and bounded."""

from collections.abc import Callable

from stopline.errortext import clean

OUTPUT_BYTES = 64 * 1024
"""What is passed on of one stream in one attempt."""
LINE_BYTES = 4 * 1024
TAIL_BYTES = 4000


class Stream:
    """One stream of one attempt. `emit` is called with every line that is passed on."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._emit = emit
        self._pending = b""
        self._room = OUTPUT_BYTES
        self._tail = b""
        self.dropped = 0

    def feed(self, data: bytes) -> None:
        """Takes what was read from the pipe."""
        self._tail = (self._tail + data)[-TAIL_BYTES:]
        taken = data[: self._room]
        self._room -= len(taken)
        self.dropped += len(data) - len(taken)
        *lines, self._pending = (self._pending + taken).split(b"\n")
        for line in lines:
            self._line(line)
        while len(self._pending) > LINE_BYTES:
            self._line(self._pending[:LINE_BYTES])
            self._pending = self._pending[LINE_BYTES:]

    def close(self) -> None:
        """Passes on a last line that has no end."""
        if self._pending:
            self._line(self._pending)
            self._pending = b""

    @property
    def tail(self) -> str:
        """The last that was written, also beyond the bound."""
        return _text(self._tail).strip()

    def _line(self, line: bytes) -> None:
        for start in range(0, len(line), LINE_BYTES):
            self._emit(_text(line[start : start + LINE_BYTES]))


def _text(data: bytes) -> str:
    return clean(data.decode("utf-8", errors="backslashreplace"))
