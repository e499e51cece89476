"""When the demo's clock has to stop next: a poller looks at whole multiples of its interval, and only then."""

from collections.abc import Iterable, Mapping
from typing import Any

from stopline.policy import Policy
from stopline_cli.demo.clock import MINUTE, SimulatedClock
from stopline_cli.words import instant

Job = Mapping[str, Any]

_READY = {"pending": "due_at", "uncertain": "next_check_at", "claimed": "lease_until"}


class Timetable:
    """Which pollers have looked, and when each looks next. Times are whole minutes since the start."""

    def __init__(self, policies: Mapping[str, Policy]) -> None:
        self._every = {kind: policy.run.every // MINUTE for kind, policy in policies.items()}
        self._looked: dict[str, int] = {}

    def due(self, minute: int) -> list[str]:
        """The kinds whose poller looks at this minute: one of its times has come since it looked last."""
        return [kind for kind, every in self._every.items() if minute // every > self._turn(kind)]

    def looked(self, kinds: Iterable[str], minute: int) -> None:
        """Notes that these were polled at this minute."""
        self._looked |= dict.fromkeys(kinds, minute)

    def next_find(self, jobs: Iterable[Job], clock: SimulatedClock) -> tuple[int, Job] | None:
        """The first minute at which a poller finds one of these open jobs due, and the job; None when there is none."""
        finds = [(self._finds(job["kind"], clock.minute_of(instant(_ready(job)))), job) for job in jobs]
        return min(finds, key=lambda find: find[0], default=None)

    def _finds(self, kind: str, ready: int) -> int:
        every = self._every[kind]
        return max(-(-ready // every), self._turn(kind) + 1) * every

    def _turn(self, kind: str) -> int:
        return self._looked[kind] // self._every[kind] if kind in self._looked else -1


def _ready(job: Job) -> str:
    """When a poller has something to do for an open job: its due time, its receiver's next question, or the end of the
    lease of one whose poller died."""
    ready: str = job[_READY[job["state"]]]
    return ready
