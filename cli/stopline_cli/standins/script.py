"""The script of faults: which requests go wrong, how, and how often.

As JSON, a marker and the steps that requests with this marker meet, in order:

    {"1004": [{"fault": "throttle", "times": 2, "retry_after": 7}],
     "1008": [{"fault": "empty"}]}

A step without `times` is met for ever; after the last step requests are answered as usual. The marker "*" is for
requests that no other marker names.
"""

import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

EVERY_MARKER = "*"
_FIELDS = frozenset({"fault", "times", "retry_after", "seconds", "error", "answer"})


class ScriptError(ValueError):
    """A script breaks a rule; the message names the marker, the step and the rule."""


@dataclass(frozen=True, slots=True)
class Step:
    """One kind of fault. `times` None means for ever; `retry_after` and `seconds` are seconds."""

    fault: str
    times: int | None = None
    retry_after: float | None = None
    seconds: float | None = None
    error: str | None = None
    answer: str | None = None


class Script:
    """Steps by marker, used up as requests meet them. Safe to share between threads."""

    def __init__(self, faults: Collection[str]) -> None:
        self._faults = frozenset(faults)
        self._lock = threading.Lock()
        self._steps: dict[str, list[Step]] = {}
        self._met: dict[str, int] = {}

    def replace(self, document: object) -> None:
        """Take a new script from its start. Raises ScriptError, and keeps the old one, if it is wrong."""
        if not isinstance(document, Mapping):
            raise ScriptError("the script must be an object of marker: list of steps")
        steps = {str(marker): self._parse(str(marker), value) for marker, value in document.items()}
        with self._lock:
            self._steps = steps
            self._met = {}

    def rewind(self) -> None:
        """Start every marker's steps again."""
        with self._lock:
            self._met = {}

    def take(self, markers: Sequence[str]) -> Step | None:
        """The step that a request with these markers meets now. The first marker that has steps decides."""
        with self._lock:
            marker = next((m for m in markers if m in self._steps), None)
            if marker is None:
                return None
            met = self._met.get(marker, 0)
            self._met[marker] = met + 1
            for step in self._steps[marker]:
                if step.times is None or met < step.times:
                    return step
                met -= step.times
            return None

    def _parse(self, marker: str, value: object) -> list[Step]:
        if not isinstance(value, list):
            raise ScriptError(f"{marker}: must be a list of steps")
        return [self._step(f"{marker}[{position}]", step) for position, step in enumerate(value)]

    def _step(self, where: str, value: object) -> Step:
        if not isinstance(value, Mapping):
            raise ScriptError(f"{where}: must be an object with a fault")
        unknown = sorted(str(key) for key in value if key not in _FIELDS)
        if unknown:
            raise ScriptError(f"{where}.{unknown[0]}: unknown; use {', '.join(sorted(_FIELDS))}")
        fault = value.get("fault")
        if not isinstance(fault, str) or fault not in self._faults:
            raise ScriptError(f"{where}.fault: must be one of {', '.join(sorted(self._faults))}, not {fault!r}")
        times = value.get("times")
        if times is not None and (not isinstance(times, int) or isinstance(times, bool) or times < 1):
            raise ScriptError(f"{where}.times: must be a whole number from 1, or left out for ever")
        return Step(
            fault=fault,
            times=times,
            retry_after=_seconds(f"{where}.retry_after", value.get("retry_after")),
            seconds=_seconds(f"{where}.seconds", value.get("seconds")),
            error=_text(f"{where}.error", value.get("error")),
            answer=_text(f"{where}.answer", value.get("answer")),
        )


def _seconds(where: str, value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 86_400:
        raise ScriptError(f"{where}: must be seconds from 0 to 86400")
    return value


def _text(where: str, value: object) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise ScriptError(f"{where}: must be text")
