"""One reading of the monitor: the exact figures of the design, zeros included, with each kind's thresholds applied."""

from datetime import timedelta
from typing import Any

import pytest

from stopline.states import Outcome
from stopline.store.upkeep import Health, UpkeepStore
from tests.support.database import Database
from tests.support.plans import pages_read
from tests.support.poller import Poller, sweep
from tests.support.rows import insert_job, insert_many

TOTALS = {
    "Due", "OldestDueAge", "OldestUnfinishedAge", "Claimed", "Stuck", "AbandonedOpen", "Abandoned", "Uncertain",
    "LastAttempt", "SpendToday", "WorstCaseSpend", "OldestTransactionAge", "Breakers", "KindsLate", "KindsStuck",
    "KindsAbandoned", "KindsUncertainOverdue", "KindsOverBudget", "KindsPaused", "PollersSilent", "SweeperSilent",
}  # fmt: skip

S, M, H = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


def health(db: Database) -> Health:
    return UpkeepStore(db.session("stopline_monitor")).health()


def totals(db: Database) -> dict[str, float | None]:
    """The totals that are not zero."""
    return {name: figure for name, figure in health(db).totals.items() if figure != 0}


def flagged(db: Database, flag: str) -> list[str]:
    """The kinds for which a figure of their line is true or not zero."""
    return [kind["kind"] for kind in health(db).kinds if kind[flag]]


def test_an_empty_database_reads_zero_in_every_figure(db: Database) -> None:
    """MO-03, MO-04: the maximum over no rows is 0, not null and not missing."""
    reading = health(db)
    assert reading.totals == dict.fromkeys(TOTALS, 0)
    assert reading.kinds == []


def test_a_queue_that_was_drained_reads_zero_again_in_every_figure(db: Database) -> None:
    """MO-03: backlog 5, drained, read twice."""
    db.policy(per_attempt_usd="0.20")
    for _ in range(5):
        db.enqueue()
    assert health(db).totals["Due"] == 5
    poller = Poller(db)
    for job in poller.claim(batch=5).jobs:
        poller.succeed(job, cost="0")
    for _ in range(2):
        reading = health(db)
        assert reading.totals == dict.fromkeys(TOTALS, 0)
        assert [kind["due"] for kind in reading.kinds] == [0]


def test_ages_count_what_waits_and_what_is_unfinished_each_by_its_own_rule(db: Database) -> None:
    """MO-02: neither future work, backoff nor running work is due; a retry does not make day-old work young."""
    db.policy()
    db.freeze()
    insert_job(db, created_at=-5 * H, due_at=H)
    insert_job(db, created_at=-1 * H, due_at=10 * H, attempts=1, due_rule="backoff")
    insert_job(db, "claimed", created_at=-3 * H, due_at=-2 * H, claimed_at=-2 * H)
    insert_job(db, created_at=-24 * H, due_at=30 * S, attempts=3, due_rule="backoff")
    insert_job(db, created_at=-30 * S, due_at=-30 * S)
    assert totals(db) == {"Due": 1, "OldestDueAge": 30, "OldestUnfinishedAge": 86400, "Claimed": 1}


def test_each_state_is_counted_by_its_own_rule(db: Database) -> None:
    db.policy(stuck_grace=300, due_age=86400)
    db.freeze()
    for priority in range(4):
        insert_job(db, priority=priority, due_at=-priority * M, created_at=-10 * M)
    insert_job(db, "claimed", lease_until=-299 * S)
    insert_job(db, "claimed", lease_until=-301 * S)
    insert_job(db, "uncertain", review_by=M)
    insert_job(db, "uncertain", review_by=-1 * M, created_at=-20 * M)
    insert_job(db, "abandoned", finished_at=-4 * M)
    insert_job(db, "abandoned", finished_at=-6 * M)
    insert_job(db, "abandoned", finished_at=-1 * M, acknowledged_at=timedelta())
    insert_job(db, "cancelled", created_at=-99 * H)
    insert_job(db, "succeeded", created_at=-99 * H)
    assert totals(db) == {
        "Due": 4,
        "OldestDueAge": 180,
        "OldestUnfinishedAge": 1200,
        "Claimed": 2,
        "Stuck": 1,
        "Uncertain": 2,
        "AbandonedOpen": 2,
        "Abandoned": 2,
        "KindsStuck": 1,
        "KindsAbandoned": 1,
        "KindsUncertainOverdue": 1,
    }


@pytest.mark.parametrize("price", [None, "0.20"])
def test_last_attempt_counts_pending_jobs_with_one_attempt_left(db: Database, price: str | None) -> None:
    db.policy(max_attempts=5, per_attempt_usd=price)
    insert_job(db, attempts=4)
    insert_job(db, attempts=4, due_at=H)
    insert_job(db, attempts=1, max_attempts=2)
    insert_job(db, attempts=0, max_attempts=1)
    insert_job(db, attempts=3)
    insert_job(db, attempts=0)
    insert_job(db, "claimed", attempts=4)
    insert_job(db, "abandoned", attempts=4)
    assert health(db).totals["LastAttempt"] == 4


def test_worst_case_is_what_open_jobs_may_still_cost_in_their_round(db: Database) -> None:
    db.policy("paid", per_attempt_usd="0.20", max_attempts=5)
    db.policy("bounded", per_attempt_usd="0.20", per_job_usd="0.50", max_attempts=5)
    db.policy("agent", per_attempt_usd="0", per_step_usd="0.10", max_steps=8, max_attempts=5)
    db.policy("free")
    insert_job(db, kind="paid")
    insert_job(db, "claimed", kind="paid", attempts=3, cost_usd="0.60")
    insert_job(db, "uncertain", kind="paid", attempts=4, cost_usd="0.80")
    insert_job(db, "abandoned", kind="paid")
    insert_job(db, "succeeded", kind="paid")
    insert_job(db, kind="bounded", attempts=1, cost_usd="0.20")
    insert_job(db, kind="agent", attempts=1, steps=3)
    insert_job(db, kind="free")
    kinds = {kind["kind"]: kind["worst_case_spend"] for kind in health(db).kinds}
    assert kinds == pytest.approx({"paid": 1.60, "bounded": 0.30, "agent": 0.50, "free": 0})
    assert health(db).totals["WorstCaseSpend"] == pytest.approx(2.40)


def test_spend_is_of_the_present_utc_day(db: Database) -> None:
    db.policy(per_attempt_usd="0.20", max_attempts=5)
    db.enqueue()
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.TRANSIENT, cost="0.07")
    assert health(db).totals["SpendToday"] == pytest.approx(0.07)
    db.move("24h")
    assert health(db).totals["SpendToday"] == 0


def test_each_kind_is_measured_by_its_own_thresholds(db: Database) -> None:
    strict: dict[str, Any] = {"due_age": 60, "stuck_grace": 60, "daily_budget_usd": "1"}
    lax: dict[str, Any] = {"due_age": 600, "stuck_grace": 600, "daily_budget_usd": "5"}
    for kind, thresholds in (("strict", strict), ("lax", lax)):
        db.policy(kind, **thresholds)
        insert_job(db, kind=kind, due_at=-2 * M)
        insert_job(db, "claimed", kind=kind, lease_until=-2 * M)
        db.admin.execute("insert into stopline.spend values (%s, stopline.utc_day(stopline.clock()), 1)", [kind])
    assert {flag: flagged(db, flag) for flag in ("late", "stuck", "over_budget")} == {
        "late": ["strict"],
        "stuck": ["strict"],
        "over_budget": ["strict"],
    }
    found = totals(db)
    assert [found[name] for name in ("KindsLate", "KindsStuck", "KindsOverBudget")] == [1, 1, 1]


def test_a_poller_is_silent_after_three_of_its_intervals_but_not_before_it_could_run(db: Database) -> None:
    db.policy("minutely", run_every=60)
    db.policy("hourly", run_every=3600)
    db.freeze()
    assert flagged(db, "poller_silent") == []
    db.move("181s")
    assert flagged(db, "poller_silent") == ["minutely"]
    db.connect().execute("select stopline.tick('minutely')")
    assert flagged(db, "poller_silent") == []
    db.move("3h")
    assert flagged(db, "poller_silent") == ["hourly", "minutely"]
    assert health(db).totals["PollersSilent"] == 2


def test_the_poller_of_a_kind_that_returns_is_not_silent_before_it_could_run(db: Database) -> None:
    db.policy("other")
    db.policy("work")
    db.retire("work")
    db.move("30 days")
    assert flagged(db, "poller_silent") == ["other"]
    db.policy("work")
    assert flagged(db, "poller_silent") == ["other"]


def test_the_sweeper_is_silent_after_five_minutes(db: Database) -> None:
    """RE-07: its last run is a plain stamp, not a job of its own queue."""
    db.policy()
    db.freeze()
    db.move("1h")
    sweep(db)
    db.move("300s")
    assert health(db).totals["SweeperSilent"] == 0
    db.move("1s")
    assert health(db).totals["SweeperSilent"] == 1


def test_a_pause_counts_until_it_ends_and_a_breaker_until_it_closes(db: Database) -> None:
    db.policy("work")
    db.admin.execute(
        "update stopline.kind set paused_at = stopline.clock(), paused_until = stopline.clock() + interval '1 minute',"
        " paused_by = 'ada', paused_why = 'maintenance'"
    )
    assert totals(db) == {"KindsPaused": 1}
    db.move("61s")
    assert totals(db).get("KindsPaused") is None
    # A breaker that has cooled down still pauses: only its probe, or a person, resumes the kind.
    db.admin.execute("update stopline.kind set paused_by = 'breaker'")
    assert (totals(db)["KindsPaused"], totals(db)["Breakers"]) == (1, 1)


def test_expired_leases_are_seen_before_a_sweep_and_gone_after_it(db: Database) -> None:
    """RE-10, MO-10: the gauge is read before any cleanup, and 5 dead workers' rows do not stay."""
    db.policy(timeout=30, margin=15, stuck_grace=60)
    for _ in range(5):
        db.enqueue()
    assert len(Poller(db).claim(batch=5).jobs) == 5
    db.move("106s")
    assert (totals(db)["Claimed"], totals(db)["Stuck"]) == (5, 5)
    assert sweep(db) == {"crashed_to_pending": 5}
    assert "Stuck" not in totals(db)
    assert "Claimed" not in totals(db)


def test_the_oldest_transaction_of_any_session_is_seen(db: Database) -> None:
    """CL-09: a snapshot that somebody holds is what keeps dead rows from being cleaned up."""
    assert health(db).totals["OldestTransactionAge"] == 0
    holder = db.connect("postgres", autocommit=False)
    (began,) = holder.execute("select transaction_timestamp() from stopline.kind limit 0").fetchone() or (None,)
    assert began is None
    seen = health(db).totals["OldestTransactionAge"]
    (bound,) = db.admin.execute(
        "select extract(epoch from clock_timestamp() - xact_start)::float8 from pg_stat_activity where pid = %s",
        [holder.info.backend_pid],
    ).fetchone() or (0.0,)
    assert seen is not None
    assert 0 < seen <= bound
    holder.rollback()
    assert health(db).totals["OldestTransactionAge"] == 0


def test_a_reading_reads_no_ended_rows(db: Database) -> None:
    """MO-11, CL-10: what one reading costs does not grow with the jobs that are done."""
    db.policy(per_attempt_usd="0.20")
    insert_job(db)
    pages = []
    for more in (5_000, 15_000):
        insert_many(db, more)
        db.admin.execute("vacuum analyze stopline.job")
        pages.append(pages_read(db.connect("stopline_monitor"), "select stopline.health()"))
    assert pages[1] <= pages[0] + 5
    assert pages[1] < 150
