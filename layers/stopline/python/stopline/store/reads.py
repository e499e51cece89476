"""What people may look at."""

from datetime import datetime
from typing import Any, cast

from stopline.store.connection import Session


class ReadStore:
    """The engine's reading functions over one session. Times are ISO text in UTC; payloads are never returned."""

    def __init__(self, session: Session) -> None:
        self.session = session

    def jobs(self, kind: str | None = None, state: str | None = None, limit: int = 50) -> list[dict[str, Any]]:
        """The newest jobs, at most `limit` (1 to 1000) of a kind and state."""
        return [row for (row,) in self.session.rows("select stopline.list_jobs(%s, %s, %s)", (kind, state, limit))]

    def job(self, job_id: int) -> dict[str, Any] | None:
        """One job with `now`, `job`, `kind`, `attempts`, `checks`, `events` and `kind_events` (its kind's pauses during
        the job's life); None if there is no such job."""
        rows = self.session.rows("select stopline.show_job(%s)", (job_id,))
        return rows[0][0] if rows else None

    def kinds(self) -> list[dict[str, Any]]:
        """Every kind that was ever deployed, with its policy (spans in seconds) and state."""
        return [row for (row,) in self.session.rows("select stopline.list_kinds()")]

    def exposure(self, kind: str | None = None) -> dict[str, Any]:
        """What open jobs may still cost: `now`, `day`, `totals` and `kinds`, each with all terms of its arithmetic."""
        ((answer,),) = self.session.rows("select stopline.exposure(%s)", (kind,))
        return dict(answer)

    def now(self) -> datetime:
        """The database's time."""
        ((now,),) = self.session.rows("select stopline.read_clock()")
        return cast(datetime, now)
