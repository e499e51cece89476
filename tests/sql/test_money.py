"""Money is reserved before it is spent and settled when the cost is known."""

from decimal import Decimal

import pytest

from stopline.errors import LeaseLost
from stopline.states import ClaimStatus, Outcome, State, StopReason
from tests.support.database import Database
from tests.support.poller import Poller, sweep


def spent(db: Database) -> list[Decimal]:
    return [row["usd"] for row in db.rows("select usd from stopline.spend order by day")]


def test_a_claim_reserves_and_a_finish_settles_to_what_was_reported(db: Database) -> None:
    db.policy(per_attempt_usd="0.20")
    for _ in range(3):
        db.enqueue()
    poller = Poller(db)
    cheap, silent, dear = poller.one(), poller.one(), poller.one()
    assert (db.job(cheap.id)["cost_usd"], spent(db)) == (Decimal("0.20"), [Decimal("0.60")])
    poller.succeed(cheap, cost="0.031")
    poller.succeed(silent)
    poller.fail(dear, cost="0.75")
    assert [db.job(job.id)["cost_usd"] for job in (cheap, silent, dear)] == [
        Decimal("0.031"),
        Decimal("0.20"),
        Decimal("0.75"),
    ]
    assert spent(db) == [Decimal("0.981")]
    assert [a["cost_usd"] for a in db.attempts(dear.id)] == [Decimal("0.75")]


def test_a_crash_keeps_its_reservation_and_what_it_had_reported_beyond_it(db: Database) -> None:
    db.policy(per_attempt_usd="0.20", retry_base=1, retry_cap=1, max_crashes=5)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    poller.fail(job, Outcome.CRASHED, cost="0.05")
    assert spent(db) == [Decimal("0.20")]
    db.move("2s")
    poller.fail(poller.one(), Outcome.TIMEOUT, cost="0.50")
    assert spent(db) == [Decimal("0.70")]
    assert db.job(job.id)["cost_usd"] == Decimal("0.70")


def test_a_late_success_settles_the_reservation_that_its_crash_had_kept(db: Database) -> None:
    db.policy(per_attempt_usd="0.20")
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    db.move("1h")
    sweep(db)
    poller.succeed(job, cost="0.03")
    assert (spent(db), db.job(job.id)["cost_usd"]) == ([Decimal("0.03")], Decimal("0.03"))


def test_the_job_budget_ends_the_job_before_an_attempt_that_it_cannot_pay(db: Database) -> None:
    db.policy(per_attempt_usd="0.20", per_job_usd="0.50", max_attempts=9, retry_base=1, retry_cap=1)
    db.enqueue()
    poller = Poller(db)
    assert poller.fail(poller.one()).state is State.PENDING
    db.move("2s")
    finish = poller.fail(poller.one())
    assert (finish.state, finish.stop_reason) == (State.ABANDONED, StopReason.BUDGET_EXHAUSTED)


def test_a_lowered_job_budget_stops_rows_that_are_already_waiting(db: Database) -> None:
    db.policy(per_attempt_usd="0.20", per_job_usd="1.00", retry_base=1, retry_cap=1)
    job = db.enqueue()
    poller = Poller(db)
    poller.fail(poller.one())
    db.move("2s")
    db.policy(per_attempt_usd="0.20", per_job_usd="0.30", retry_base=1, retry_cap=1)
    assert poller.claim().status is ClaimStatus.EMPTY
    assert sweep(db) == {"budget_exhausted": 1}
    assert db.job(job.job_id or 0)["stop_reason"] == "budget_exhausted"


def test_the_daily_budget_stops_claims_until_the_next_utc_day_and_rewrites_no_row(db: Database) -> None:
    db.admin.execute(
        "update stopline_local.clock set frozen_at = date_trunc('day', clock_timestamp(), 'UTC') + interval '23 hours'"
    )
    db.policy(per_attempt_usd="0.20", daily_budget_usd="0.40")
    ids = [db.enqueue().job_id or 0 for _ in range(4)]
    poller = Poller(db)
    assert len(poller.claim(batch=4).jobs) == 2
    before = [db.job(job_id) for job_id in ids[2:]]
    assert poller.claim(batch=4).status is ClaimStatus.BUDGET
    assert poller.store.tick("work", None).status is ClaimStatus.BUDGET
    assert [db.job(job_id) for job_id in ids[2:]] == before
    db.move("1h")
    assert len(poller.claim(batch=4).jobs) == 2


def test_a_kind_whose_budget_pays_no_further_attempt_is_reported(db: Database) -> None:
    db.policy(per_attempt_usd="0.30", daily_budget_usd="1.00")
    db.enqueue()
    poller = Poller(db)
    over = "select (stopline.health() -> 'totals' ->> 'KindsOverBudget')::int as n"
    for expected in (0, 0, 1):
        poller.succeed(poller.one(), cost="0.30")
        db.enqueue()
        assert db.rows(over)[0]["n"] == expected
    assert poller.claim().status is ClaimStatus.BUDGET


def test_midnight_gives_a_running_agent_no_fresh_budget(db: Database) -> None:
    db.admin.execute(
        "update stopline_local.clock set frozen_at = date_trunc('day', clock_timestamp(), 'UTC') + interval '23:59'"
    )
    db.policy(
        per_attempt_usd="0", per_step_usd="0.10", daily_budget_usd="0.30", max_steps=9, timeout=300, poller_timeout=900
    )
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    before = [poller.store.count_step(job.id, job.fence, n).status for n in (1, 2)]
    db.move("2m")
    after = [poller.store.count_step(job.id, job.fence, n).status for n in (3, 4)]
    assert (before, after, spent(db)) == (["ok", "ok"], ["ok", "budget"], [Decimal("0.30")])


def test_a_cost_beyond_a_million_stops_the_figure_and_not_the_finish(db: Database) -> None:
    db.policy(per_attempt_usd="1", retry_base=1, retry_cap=1)
    db.enqueue()
    poller = Poller(db)
    poller.fail(poller.one(), cost="900000")
    db.move("2s")
    assert poller.succeed(poller.one(), cost="900000").state is State.SUCCEEDED


def test_a_settlement_belongs_to_the_day_of_its_claim(db: Database) -> None:
    db.admin.execute(
        "update stopline_local.clock set frozen_at = date_trunc('day', clock_timestamp(), 'UTC') + interval '23:59'"
    )
    db.policy(per_attempt_usd="0.20", timeout=120, poller_timeout=900)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    db.move("1m")
    poller.succeed(job, cost="0.05")
    assert spent(db) == [Decimal("0.05")]


def test_an_agent_step_reserves_its_price_once_before_it_is_taken(db: Database) -> None:
    db.policy(per_attempt_usd="0.10", per_step_usd="0.05", per_job_usd="0.30", max_steps=3, timeout=30, margin=15)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    answers = [poller.store.count_step(job.id, job.fence, n).status for n in (1, 2, 2, 3, 4)]
    assert answers == ["ok", "ok", "ok", "ok", "step_limit"]
    assert spent(db) == [Decimal("0.25")]
    db.move("46s")
    with pytest.raises(LeaseLost):
        poller.store.count_step(job.id, job.fence, 4)


def test_a_step_that_the_job_cannot_pay_is_refused(db: Database) -> None:
    db.policy(per_attempt_usd="0.10", per_step_usd="0.05", per_job_usd="0.17", max_steps=30)
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    assert [poller.store.count_step(job.id, job.fence, n).status for n in (1, 2)] == ["ok", "budget"]
