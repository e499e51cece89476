"""What the sweeper and the monitor may do."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from stopline.store.connection import Session


@dataclass(frozen=True, slots=True)
class Health:
    """One reading. `totals` has the metric names as keys; None is a figure that could not be read. `kinds` has one
    plain mapping per kind."""

    totals: dict[str, float | None]
    kinds: list[dict[str, Any]]


class UpkeepStore:
    """The engine's sweeper and monitor functions over one session."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def sweep(self, limit: int) -> dict[str, int]:
        """End expired attempts and waiting rows past a limit, at most `limit` of each. Counts per transition."""
        return dict(self.session.rows("select transition, jobs from stopline.sweep(%s)", (limit,)))

    def purge(self, limit: int) -> dict[str, int]:
        """Delete at most `limit` jobs past their kind's retention. Counts of what was removed."""
        return dict(self.session.rows("select what, removed from stopline.purge(%s)", (limit,)))

    def health(self) -> Health:
        """Totals and kinds as the monitor reports them."""
        ((answer,),) = self.session.rows("select stopline.health()")
        return Health(answer["totals"], answer["kinds"])

    def reasons(self, kind: str | None = None, since: datetime | None = None) -> list[dict[str, Any]]:
        """Abandoned jobs grouped by kind, stop reason and error fingerprint, the largest group first."""
        names = ("kind", "stop_reason", "fingerprint", "jobs", "unacknowledged", "error_class", "error",
                 "first_at", "last_at", "example_job")  # fmt: skip
        rows = self.session.rows(
            "select kind, stop_reason, fingerprint, jobs, unacknowledged, error_class, error, first_at, last_at, "
            "example_job from stopline.reasons(%s, %s)",
            (kind, since),
        )
        return [dict(zip(names, row, strict=True)) for row in rows]
