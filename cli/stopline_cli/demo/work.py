"""The pieces of work of the demo, and the faults that each of them meets."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto


class Origin(Enum):
    """Where a job comes from."""

    SOURCE = auto()
    SILENT_LATER = auto()
    BY_HAND = auto()
    EXPORT = auto()


@dataclass(frozen=True, slots=True)
class Fault:
    """One fault, met by `times` calls in a row; None is for ever. `retry_after` is in seconds."""

    fault: str
    times: int | None = None
    retry_after: float | None = None
    error: str | None = None

    def as_step(self) -> dict[str, object]:
        """The fault as a stand-in's script has it."""
        fields = {"fault": self.fault, "times": self.times, "retry_after": self.retry_after, "error": self.error}
        return {name: value for name, value in fields.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Work:
    """One job that the demo makes.

    `marker` is what stand-ins know it by, None for one that never calls. `killed_in_call` is the call during which the
    driver kills the attempt's process. `lookups` are the faults that questions to its receiver meet. `deadline` is the
    time from the start after which it is of no use. `prompt_bytes` is how much there is for the model to read.
    """

    kind: str
    key: str
    marker: str | None
    story: str = ""
    faults: tuple[Fault, ...] = ()
    origin: Origin = Origin.SOURCE
    killed_in_call: int | None = None
    lookups: tuple[Fault, ...] = ()
    deadline: timedelta | None = None
    prompt_bytes: int = 0

    def fault_of_call(self, number: int) -> Fault | None:
        """What the call of this number, from 1, meets."""
        return _met(self.faults, number)

    def fault_of_lookup(self, number: int) -> Fault | None:
        """What the question of this number, from 1, meets."""
        return _met(self.lookups, number)

    @property
    def calls_until_fine(self) -> int | None:
        """The number of the first call that meets no fault; None if none ever does."""
        if self.marker is None or any(fault.times is None for fault in self.faults):
            return None
        return 1 + sum(fault.times or 0 for fault in self.faults)


def script(works: Iterable[Work]) -> dict[str, list[dict[str, object]]]:
    """The faults of these works as a stand-in takes them."""
    return dict(_scripted(works))


def _scripted(works: Iterable[Work]) -> Iterator[tuple[str, list[dict[str, object]]]]:
    for work in works:
        if work.marker is not None and work.faults:
            yield work.marker, [fault.as_step() for fault in work.faults]
        if work.marker is not None and work.lookups:
            yield f"lookup:{work.marker}", [fault.as_step() for fault in work.lookups]


def _met(faults: Iterable[Fault], number: int) -> Fault | None:
    for fault in faults:
        if fault.times is None or number <= fault.times:
            return fault
        number -= fault.times
    return None
