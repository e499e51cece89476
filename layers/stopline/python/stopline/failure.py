"""How an attempt failed: the one value that travels from a child to the supervisor and on to the database."""

import math
from dataclasses import dataclass

from stopline.errortext import clean
from stopline.fingerprint import fingerprint
from stopline.states import Outcome, StopReason

_CLASS_BYTES = 200
_FAILED = frozenset({Outcome.TRANSIENT, Outcome.PERMANENT, Outcome.UNCERTAIN, Outcome.TIMEOUT, Outcome.CRASHED})
_STOPS = frozenset({StopReason.PERMANENT_FAILURE, StopReason.UNREADABLE, StopReason.STEP_LIMIT})


@dataclass(frozen=True, slots=True)
class Failure:
    """An attempt that did not succeed.

    `error_class` and `error` are cleaned, redacted and cut here, so that no caller can build one that the database
    refuses. `retry_after` is what the receiver asked for, in seconds; a negative or non-finite one is dropped.
    `stop_reason` belongs to permanent failures alone and is `permanent_failure` unless said otherwise.
    """

    outcome: Outcome
    error_class: str
    error: str
    retry_after: float | None = None
    stop_reason: StopReason | None = None

    def __post_init__(self) -> None:
        if self.outcome not in _FAILED:
            raise ValueError(f"outcome {self.outcome} is not a failure; use one of {', '.join(sorted(_FAILED))}")
        if self.stop_reason is not None and (self.outcome is not Outcome.PERMANENT or self.stop_reason not in _STOPS):
            raise ValueError(f"stop reason {self.stop_reason} does not belong to outcome {self.outcome}")
        error_class = clean(self.error_class, _CLASS_BYTES) or "Exception"
        set_field = object.__setattr__
        set_field(self, "error_class", error_class)
        set_field(self, "error", clean(self.error) or error_class)
        set_field(self, "retry_after", sane_delay(self.retry_after))
        if self.outcome is Outcome.PERMANENT and self.stop_reason is None:
            set_field(self, "stop_reason", StopReason.PERMANENT_FAILURE)

    @property
    def fingerprint(self) -> str:
        """The same for every occurrence of one fault, whatever ids and times its text names."""
        return fingerprint(self.error_class, self.error)


LONGEST_DELAY = 7 * 24 * 3600.0
"""Seconds. A receiver that asks for more than a week is taken to be broken, not patient."""


def sane_delay(seconds: float | None) -> float | None:
    """The delay as a float of seconds from 0 to a week, or None for anything else."""
    if seconds is None or isinstance(seconds, bool) or not isinstance(seconds, int | float):
        return None
    if not 0 <= seconds <= LONGEST_DELAY or not math.isfinite(seconds):
        return None
    return float(seconds)
