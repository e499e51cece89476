"""What a kind says about errors that Stopline does not know, or that mean something else at its receiver.

`CLASSES` in its handler.py, checked when the file is imported:

    CLASSES = {
        LedgerLocked: "transient",       # an exception class, its subclasses included
        409: "transient",                # an HTTP status from 400 to 599
        "ConflictException": "permanent" # an AWS error code
    }
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from stopline.errors import InvalidInput, Permanent, StoplineError, Transient, Uncertain
from stopline.states import Outcome

WORDS: Mapping[str, Outcome] = {
    str(outcome): outcome for outcome in (Outcome.TRANSIENT, Outcome.PERMANENT, Outcome.UNCERTAIN)
}
_OWN = (StoplineError, Transient, Permanent, Uncertain)


@dataclass(frozen=True, slots=True)
class KindClasses:
    """A kind's own classes of failure, by what they are found by."""

    exceptions: Mapping[type[BaseException], Outcome] = field(default_factory=dict)
    statuses: Mapping[int, Outcome] = field(default_factory=dict)
    codes: Mapping[str, Outcome] = field(default_factory=dict)


NONE = KindClasses()


def read_classes(value: object) -> KindClasses:
    """The value of `CLASSES`. Raises InvalidInput naming the entry and the rule."""
    if not isinstance(value, Mapping):
        raise InvalidInput("CLASSES", f"must be a dict, not a {type(value).__name__}")
    exceptions: dict[type[BaseException], Outcome] = {}
    statuses: dict[int, Outcome] = {}
    codes: dict[str, Outcome] = {}
    for key, word in value.items():
        outcome = WORDS.get(word) if isinstance(word, str) else None
        if outcome is None:
            raise InvalidInput(f"CLASSES[{_shown(key)}]", f"must be one of {', '.join(WORDS)}, not {_shown(word)}")
        if isinstance(key, type) and issubclass(key, BaseException):
            if issubclass(key, _OWN):
                raise InvalidInput(f"CLASSES[{_shown(key)}]", "is Stopline's own and means what it says; take it out")
            exceptions[key] = outcome
        elif isinstance(key, int) and not isinstance(key, bool) and 400 <= key <= 599:
            statuses[key] = outcome
        elif isinstance(key, str) and key:
            codes[key] = outcome
        else:
            rule = "must be an exception class, an HTTP status from 400 to 599 or an AWS error code"
            raise InvalidInput(f"CLASSES[{_shown(key)}]", rule)
    return KindClasses(exceptions, statuses, codes)


def _shown(value: object) -> str:
    if isinstance(value, type):
        return value.__name__
    try:
        return repr(value)[:60]
    except Exception:
        return f"a {type(value).__name__}"
