"""The demo's clock: the database's, which only its administrator can move."""

from datetime import datetime, timedelta
from typing import Any

import psycopg

MINUTE = timedelta(minutes=1)


class SimulatedClock:
    """`stopline.clock()` of one database, seen as minutes since the demo's start. It only goes forward."""

    def __init__(self, admin: psycopg.Connection[tuple[Any, ...]]) -> None:
        self._admin = admin
        self.started = self.now()

    def now(self) -> datetime:
        """What the database takes for the present."""
        row = self._admin.execute("select stopline.clock()").fetchone()
        assert row is not None
        now: datetime = row[0]
        return now

    @property
    def elapsed(self) -> timedelta:
        """Simulated time since the start."""
        return self.now() - self.started

    @property
    def minute(self) -> int:
        """The whole minutes that have passed."""
        return self.elapsed // MINUTE

    def minute_of(self, when: datetime) -> int:
        """The first whole minute at or after a time; 0 for what lies before the start."""
        return max(0, -((self.started - when) // MINUTE))

    def jump(self, minute: int) -> None:
        """Moves on to that minute; not at all when it has passed already."""
        step = max(self.started + minute * MINUTE - self.now(), timedelta())
        self._admin.execute("update stopline_local.clock set shift = shift + %s", (step,))
