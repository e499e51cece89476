"""The stop lines hold when every attempt's process is killed in the middle."""

from pathlib import Path

import pytest

from tests.support.database import Database
from tests.support.killed_pollers import calls_until_quiet

ISOLATION = {
    "default": "read committed",
    "repeatable": "repeatable read",
    "serializable": "serializable",
}


@pytest.mark.parametrize("isolation", ISOLATION.values())
@pytest.mark.parametrize("cap", [1, 3, 5])
def test_the_cap_holds_when_eight_pollers_are_killed_in_every_attempt(
    db: Database, tmp_path: Path, cap: int, isolation: str
) -> None:
    """RE-01: no row is claimed past its cap, and each ends once, abandoned, with the reason."""
    db.admin.execute(
        f"alter role stopline_worker in database {db.name} set default_transaction_isolation = '{isolation}'"
    )
    db.policy(max_attempts=cap, max_crashes=1000, timeout=30, retry_base=1, retry_cap=60)
    ids = [db.enqueue().job_id for _ in range(4)]
    calls = calls_until_quiet(db, tmp_path)
    assert sorted(calls) == sorted(f"{job} {attempt}" for job in ids for attempt in range(1, cap + 1))
    for job_id in ids:
        row = db.job(job_id or 0)
        assert (row["state"], row["stop_reason"], row["attempts"]) == ("abandoned", "attempts_exhausted", cap)
        assert "no answer from poller-" in row["last_error"]
        assert [a["outcome"] for a in db.attempts(row["id"])] == ["crashed"] * cap
        assert len(db.rows("select id from stopline.event where job_id = %s", row["id"])) == 1


def test_a_dollar_a_day_at_twenty_cents_an_attempt_makes_exactly_five_calls(db: Database, tmp_path: Path) -> None:
    """A crash keeps its reservation: eight pollers that all die spend the budget, and not a cent more."""
    db.policy(
        max_attempts=100,
        max_crashes=100,
        timeout=30,
        retry_base=1,
        retry_cap=1,
        per_attempt_usd="0.20",
        daily_budget_usd="1.00",
    )
    db.admin.execute(
        "update stopline_local.clock set frozen_at = date_trunc('day', clock_timestamp(), 'UTC') + interval '1 hour'"
    )
    for _ in range(20):
        db.enqueue()
    calls = calls_until_quiet(db, tmp_path, lap="1 minute")
    assert len(calls) == 5
    assert [row["usd"] for row in db.rows("select usd from stopline.spend")] == [1]
    assert {row["state"] for row in db.rows("select state from stopline.job")} == {"pending"}


def test_a_limit_on_running_jobs_is_never_passed(db: Database, tmp_path: Path) -> None:
    db.policy(concurrency=4, max_attempts=1, timeout=30)
    for _ in range(12):
        db.enqueue()
    seen: list[int] = []
    calls = calls_until_quiet(db, tmp_path, batch=3)
    assert len(calls) == 12
    for row in db.rows(
        "select a.started_at, (select count(*) from stopline.attempt b where b.started_at <= a.started_at "
        "and b.finished_at > a.started_at) as running from stopline.attempt a"
    ):
        seen.append(row["running"])
    assert max(seen) == 4
