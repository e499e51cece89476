"""Turns any exception and any text into error text that a row and a log line can hold: clean, redacted, bounded."""

import re
from collections import deque
from types import TracebackType

from stopline.limits import ERROR_BYTES
from stopline.redact import LONGEST_SECRET, redact

_WINDOW = 4 * ERROR_BYTES
"""Characters of a text that are looked at; the rest is only counted."""
_COUNT_CHUNK = 1024 * 1024
_MESSAGE_BYTES = ERROR_BYTES // 2
_CAUSE_BYTES = 640
_FRAMES_BYTES = 1024
_FRAMES = 8
_CAUSES = 3
_CHAIN_STEPS = 1000
_CLASS_CHARS = 200

# Controls but newline and tab, C1 controls, lone surrogates, and the marks that reverse or hide text on a terminal.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def clean(text: str, limit: int = ERROR_BYTES) -> str:
    """The text without NUL, control characters and lone surrogates (shown as escapes), without secrets, and at most
    `limit` bytes of UTF-8, cut between characters and marked with the number of bytes left out. Never raises."""
    text = str.__str__(text)
    window = text[:_WINDOW]
    shown = redact(_UNPRINTABLE.sub(_escape, window.replace("\r\n", "\n")))
    if len(text) > _WINDOW:
        # The window may end inside a secret that was therefore not recognised.
        shown, doubtful = shown[:-LONGEST_SECRET], shown[-LONGEST_SECRET:]
        return _cut(shown, limit, beyond=_byte_count(doubtful) + _byte_count(text) - _byte_count(window))
    return _cut(shown, limit, beyond=0)


def describe(exc: BaseException) -> tuple[str, str]:
    """What an attempt row says about an exception: its class name, and its type, message, causes and last frames.

    Bounded in size and time for messages and chains of any length. Never raises and never returns an empty text.
    """
    head = clean(_headline(exc), _MESSAGE_BYTES)
    parts = [head, *_causes(exc)]
    frames = _last_frames(exc.__traceback__)
    if frames:
        parts.append(clean(frames, _FRAMES_BYTES))
    return class_name(exc), "\n".join(parts)


def class_name(exc: BaseException) -> str:
    """The bare name of an exception's class, fit to be stored."""
    return clean(_type_name(exc, qualified=False), _CLASS_CHARS)


def _headline(exc: BaseException) -> str:
    message = _message(exc).strip()
    name = _type_name(exc, qualified=True)
    return f"{name}: {message}" if message else name


def _message(exc: BaseException) -> str:
    try:
        text = str.__str__(str(exc))
        notes = [str(note) for note in list(getattr(exc, "__notes__", None) or [])[:_CAUSES]]
        return "\n".join([text, *notes]) if notes else text
    except BaseException as broken:  # the failure being described must be recorded whatever its __str__ does
        return f"(no message: its __str__ raised {_type_name(broken, qualified=False)})"


def _type_name(exc: BaseException, *, qualified: bool) -> str:
    try:
        kind = type(exc)
        if not qualified or kind.__module__ in {"builtins", "__main__"}:
            return str(kind.__name__) or "Exception"
        return f"{kind.__module__}.{kind.__qualname__}"
    except BaseException:  # a metaclass can make even a name raise
        return "Exception"


def _causes(exc: BaseException) -> list[str]:
    """One line for each of the nearest causes, and for the root when it lies deeper."""
    chain = _chain(exc)
    lines = [f"caused by {clean(_headline(cause), _CAUSE_BYTES)}" for cause in chain[:_CAUSES]]
    if len(chain) > _CAUSES:
        skipped = len(chain) - _CAUSES - 1
        between = f" ({skipped} more between)" if skipped else ""
        lines.append(f"caused first by{between} {clean(_headline(chain[-1]), _CAUSE_BYTES)}")
    if isinstance(exc, BaseExceptionGroup):
        lines.extend(f"contains {clean(_headline(inner), _CAUSE_BYTES)}" for inner in exc.exceptions[:_CAUSES])
    return lines


def _chain(exc: BaseException) -> list[BaseException]:
    """What led to an exception, nearest first; follows a chain of any length for a bounded number of steps."""
    found: list[BaseException] = []
    seen = {id(exc)}
    current = cause_of(exc)
    while current is not None and id(current) not in seen and len(found) < _CHAIN_STEPS:
        seen.add(id(current))
        found.append(current)
        current = cause_of(current)
    return found


def cause_of(exc: BaseException) -> BaseException | None:
    """The exception that this one was raised from, or while handling it."""
    if exc.__cause__ is not None:
        return exc.__cause__
    return None if exc.__suppress_context__ else exc.__context__


def _last_frames(traceback: TracebackType | None) -> str:
    """The innermost frames, outermost of them first, one line each with a path short enough to read."""
    last: deque[TracebackType] = deque(maxlen=_FRAMES)
    while traceback is not None:
        last.append(traceback)
        traceback = traceback.tb_next
    return "\n".join(_frame_line(entry) for entry in last)


def _frame_line(entry: TracebackType) -> str:
    code = entry.tb_frame.f_code
    return f"at {'/'.join(code.co_filename.split('/')[-2:])}:{entry.tb_lineno} in {code.co_name}"


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def _byte_count(text: str) -> int:
    if text.isascii():
        return len(text)
    chunks = range(0, len(text), _COUNT_CHUNK)
    return sum(len(text[start : start + _COUNT_CHUNK].encode("utf-8", "surrogatepass")) for start in chunks)


def _cut(text: str, limit: int, *, beyond: int) -> str:
    """Cut to `limit` bytes with the mark inside them; `beyond` bytes were already left out."""
    encoded = text.encode("utf-8")
    if len(encoded) <= limit and not beyond:
        return text
    total = len(encoded) + beyond
    room = max(0, limit - len(f"… [cut: {total} bytes]".encode()))
    kept = encoded[:room].decode("utf-8", "ignore")
    return f"{kept}… [cut: {total - len(kept.encode())} bytes]"
