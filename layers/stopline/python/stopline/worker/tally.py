"""What one invocation did for one kind, as the poller's result line tells it."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from stopline.states import FinishAnswer
from stopline.store.worker import Finish


@dataclass(slots=True)
class Tally:
    """Counts of attempts: `late` ones had lost their lease; `lost` ones could not be written before it ended. `checks`
    are questions, by what the receiver answered."""

    status: str = "ok"
    tick: dict[str, int] = field(default_factory=dict)
    note: str | None = None
    claimed: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    released: int = 0
    unreadable: int = 0
    checks: Counter[str] = field(default_factory=Counter)
    late: int = 0
    lost: int = 0
    calls: int = 0
    out_of_time: bool = False
    error: str | None = None

    def finished(self, outcome: str, finishes: list[Finish]) -> None:
        """Counts finishes by what the database made of them."""
        late = sum(finish.answer == FinishAnswer.LATE for finish in finishes)
        unknown = sum(finish.answer == FinishAnswer.UNKNOWN for finish in finishes)
        self.late += late
        self.lost += unknown
        recorded = len(finishes) - late - unknown
        if recorded and outcome == "released":
            self.released += recorded
        elif recorded:
            self.outcomes[outcome] += recorded

    def as_dict(self) -> dict[str, Any]:
        """The kind's part of the result line: the first five always, the rest when there is something to tell."""
        line: dict[str, Any] = {
            "status": self.status,
            "tick": self.tick,
            "claimed": self.claimed,
            "outcomes": dict(self.outcomes),
            "released": self.released,
        }
        rest = {
            "checks": dict(self.checks),
            "unreadable": self.unreadable,
            "late": self.late,
            "lost": self.lost,
            "calls": self.calls,
            "note": self.note,
            "error": self.error,
        }
        return line | {name: value for name, value in rest.items() if value}
