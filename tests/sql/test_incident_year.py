"""The incident itself: a source returns one row on every one-minute tick for a year. The calls are the bound.

Every tick is run for two days and for five minutes around each change of state. Elsewhere the clock jumps, after a tick
was seen to change nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from stopline.states import Outcome
from stopline.store.worker import ClaimedJob
from tests.support.application import SOURCE, make_items
from tests.support.database import Database
from tests.support.deploys import deploy, policies
from tests.support.operator import Operator
from tests.support.poller import Poller

MINUTES_A_YEAR = 365 * 24 * 60
TWO_DAYS = 2 * 24 * 60
AROUND_A_CHANGE = 5
HOUR = 60


@dataclass
class Year:
    """A year at one kind: a tick, a claim, a call, a sweep each minute, and somebody who acknowledges every hour."""

    db: Database
    end: Callable[[Poller, ClaimedJob], object]
    calls: list[int] = field(default_factory=list)
    ticks: int = 0

    def __post_init__(self) -> None:
        self.poller = Poller(self.db)
        self.sweeper = self.db.connect("stopline_sweeper")
        self.ada = Operator(self.db)

    def run(self) -> None:
        minute, changed = 0, 0
        before = self._state()
        while minute < MINUTES_A_YEAR:
            self._minute(minute)
            after = self._state()
            if after != before:
                changed = minute
            before = after
            near = minute < TWO_DAYS or minute - changed < AROUND_A_CHANGE
            # Elsewhere the tick just now changed nothing; the next that could is at a due time or a lease's end.
            step = 1 if near else min(self._next_change(), HOUR * 24)
            self.db.move(f"{step}m")
            minute += step

    def _minute(self, minute: int) -> None:
        self.ticks += 1
        self.poller.store.tick("work", None)
        for job in self.poller.claim(batch=10).jobs:
            self.calls.append(minute)
            self.end(self.poller, job)
        self.sweeper.execute("select from stopline.sweep(500)")
        if minute % HOUR == 0:
            for row in self.db.rows("select id from stopline.job where state = 'abandoned'"):
                self.ada.acknowledge(row["id"])

    def _state(self) -> list[dict[str, Any]]:
        return self.db.rows(
            "select id, state, attempts, fence, stop_reason, acknowledged_at from stopline.job order by id"
        )

    def _next_change(self) -> int:
        (row,) = self.db.rows(
            "select extract(epoch from min(case state when 'pending' then due_at else lease_until end) "
            "- stopline.clock()) as s from stopline.job where state in ('pending', 'claimed')"
        )
        return max(int(row["s"] or 10**9) // 60, 1)


def fails(poller: Poller, job: ClaimedJob) -> object:
    return poller.fail(job, Outcome.TRANSIENT, "the model's answer has no text")


def crashes(poller: Poller, job: ClaimedJob) -> object:
    """Nobody says anything: the process is gone."""


def changes_nothing(poller: Poller, job: ClaimedJob) -> object:
    return poller.succeed(job)


@pytest.mark.parametrize(
    ("end", "calls", "reason"),
    [(fails, 5, "attempts_exhausted"), (crashes, 2, "crashes_exhausted"), (changes_nothing, 4, "reopen_limit")],
    ids=["fails", "crashes", "succeeds without changing anything"],
)
def test_a_year_of_ticks_makes_as_many_calls_as_the_policy_allows(
    db: Database, end: Callable[[Poller, ClaimedJob], object], calls: int, reason: str
) -> None:
    """The calls are the bound, not 525,600; acknowledging every hour opens nothing."""
    make_items(db, 1)
    deploy(db, kinds=policies("work"), sources={"work": SOURCE})
    db.policy(max_attempts=5, max_crashes=2, max_reopens=3, retry_base=900, retry_cap=14400, timeout=30, margin=15)
    year = Year(db, end)
    year.run()
    assert len(year.calls) == calls
    assert year.ticks >= TWO_DAYS + 300
    (held,) = db.rows("select state, stop_reason, holds_key, acknowledged_at from stopline.job where holds_key")
    assert (held["state"], held["stop_reason"]) == ("abandoned", reason)
    assert held["acknowledged_at"] is not None
    assert len(db.rows("select id from stopline.event where action = 'acknowledged'")) == 1
