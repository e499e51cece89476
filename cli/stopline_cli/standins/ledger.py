"""What a stand-in has received: every request, who it was for, how it ended, and whether it had its effect."""

import threading
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any


@dataclass(slots=True)
class Call:
    """One request. `status` None: it got no answer (yet). `accepted`: it had its effect: the model ran, the batch is
    stored."""

    n: int
    operation: str
    marker: str
    at: str
    fault: str | None = None
    status: int | None = None
    accepted: bool = False
    details: dict[str, Any] = field(default_factory=dict)


class Ledger:
    """Calls in the order of their arrival. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[Call] = []

    def open(self, operation: str, marker: str, **details: object) -> Call:
        """Record a request at its arrival, so that one whose client dies is counted too."""
        with self._lock:
            call = Call(
                n=len(self._calls) + 1,
                operation=operation,
                marker=marker,
                at=datetime.now(UTC).isoformat(timespec="milliseconds"),
                details=dict(details),
            )
            self._calls.append(call)
            return call

    def clear(self) -> None:
        """Forget every call."""
        with self._lock:
            self._calls = []

    def as_json(self) -> dict[str, Any]:
        """Totals, totals by marker, and the calls themselves."""
        with self._lock:
            calls = [asdict(call) for call in self._calls]
        by_marker: dict[str, dict[str, int]] = {}
        for call in calls:
            totals = by_marker.setdefault(call["marker"], {"calls": 0, "accepted": 0})
            totals["calls"] += 1
            totals["accepted"] += call["accepted"]
        return {
            "total": len(calls),
            "accepted": sum(call["accepted"] for call in calls),
            "by_marker": by_marker,
            "calls": calls,
        }
