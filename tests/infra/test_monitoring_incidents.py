"""Each alarm goes on for its incident and off after it, over EMF lines of the real monitor in simulated minutes.

CloudWatch does not publish how far back it looks for missing data, so every incident is played with two lengths.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from stopline.states import Outcome
from tests.infra.simulated_minutes import Deployment
from tests.infra.watching import shipped
from tests.support.database import Database
from tests.support.poller import Poller
from tests.support.rows import insert_job

PREFIX = "Stopline"
SECONDS = 1.0
MINUTES = 60 * SECONDS


@pytest.fixture(params=[2, 5], ids=["range of N+2", "range of N+5"])
def deployment(db: Database, request: Any) -> Iterator[Deployment]:
    """A healthy deployment with one kind; every alarm is off."""
    db.policy("work", due_age=15 * MINUTES, stuck_grace=5 * MINUTES, timeout=30, margin=15, retry_base=30)
    deployment = Deployment(db, shipped().alarms(request.param), shipped().paging_rule)
    with deployment.function:
        assert deployment.run(10) == set()
        deployment.forget()
        yield deployment


def name(alarm: str) -> str:
    return f"{PREFIX}-{alarm}"


def test_stopped_pollers_are_told_and_so_is_the_work_that_waits_for_them(deployment: Deployment) -> None:
    """MO-10: three jobs are queued and nobody asks for them; depth alone would show a small number."""
    for _ in range(3):
        deployment.db.enqueue()
    deployment.pollers = False
    assert deployment.until(name("pollers-silent"), is_on=True, within=6) >= 3
    assert deployment.paged[-1]
    assert deployment.run(15) == {name("pollers-silent"), name("late")}
    deployment.pollers = True
    deployment.until(name("pollers-silent"), is_on=False, within=3)
    assert deployment.paged[-1], "the work is still late"
    poller = Poller(deployment.db)
    for job in poller.claim(batch=3).jobs:
        poller.succeed(job)
    deployment.until(name("late"), is_on=False, within=4)
    assert not deployment.paged[-1]


def test_a_stopped_sweeper_is_told(deployment: Deployment) -> None:
    deployment.sweeper = False
    assert deployment.until(name("sweeper-silent"), is_on=True, within=9) >= 5
    assert deployment.paged[-1]
    assert deployment.on == {name("sweeper-silent")}
    deployment.sweeper = True
    deployment.until(name("sweeper-silent"), is_on=False, within=3)


def test_a_stopped_monitor_is_told_by_its_silence(deployment: Deployment) -> None:
    """AL-02: its schedule is off; every gauge is missing and only one alarm can know."""
    deployment.monitor = False
    assert deployment.until(name("monitor-silent"), is_on=True, within=6) >= 3
    assert deployment.paged[-1]
    assert deployment.run(30) == {name("monitor-silent")}
    deployment.monitor = True
    deployment.until(name("monitor-silent"), is_on=False, within=3)
    assert not deployment.paged[-1]


def test_a_new_deployment_is_silent_once_the_monitor_has_run_three_times(db: Database) -> None:
    """Before that nobody has looked, and the alarm on silence says so."""
    new = Deployment(db, shipped().alarms(), shipped().paging_rule)
    with new.function:
        assert new.run(2) == {name("monitor-silent")}
        assert new.run(1) == set()


def test_one_missed_reading_wakes_nobody(deployment: Deployment) -> None:
    """CO-13: a database that resumes refuses connections for half a minute."""
    deployment.close_database()
    deployment.run(1)
    deployment.open_database()
    assert deployment.run(10) == set()
    assert deployment.ever_on == set()
    assert not any(deployment.paged)


def test_a_database_that_cannot_be_reached_is_told(deployment: Deployment) -> None:
    """AL-02: the monitor fails and writes no number, so its silence is what is seen."""
    deployment.close_database()
    assert deployment.until(name("monitor-silent"), is_on=True, within=6) >= 3
    assert deployment.paged[-1]
    assert deployment.run(20) == {name("monitor-silent")}
    deployment.open_database()
    deployment.until(name("monitor-silent"), is_on=False, within=3)
    assert deployment.run(5) == set()


def test_an_incident_stays_told_while_the_monitor_is_silent_too(deployment: Deployment) -> None:
    """AL-02: nothing turns green because nobody looks."""
    insert_job(deployment.db, "abandoned")
    deployment.until(name("abandoned"), is_on=True, within=1)
    deployment.monitor = False
    assert deployment.run(60) == {name("abandoned"), name("monitor-silent")}
    deployment.db.admin.execute("update stopline.job set acknowledged_at = stopline.clock()")
    deployment.monitor = True
    assert deployment.run(3) == set()


def test_a_row_that_the_sweeper_cannot_end_is_told_as_stuck(deployment: Deployment) -> None:
    """A session that hangs holds the row, so every sweep passes over it."""
    db = deployment.db
    db.enqueue()
    job = Poller(db).one()
    holder = db.connect("postgres", autocommit=False)
    holder.execute("select from stopline.job where id = %s for update", [job.id])
    assert deployment.until(name("stuck"), is_on=True, within=9) >= 6
    assert deployment.paged[-1]
    assert deployment.on == {name("stuck")}
    holder.rollback()
    deployment.until(name("stuck"), is_on=False, within=3)
    assert db.job(job.id)["last_outcome"] == "crashed"


def test_an_abandoned_job_is_told_until_somebody_acknowledges_it(deployment: Deployment) -> None:
    db = deployment.db
    db.enqueue()
    poller = Poller(db)
    job = poller.one()
    poller.fail(job, Outcome.PERMANENT, "this account does not exist")
    assert deployment.until(name("abandoned"), is_on=True, within=1)
    assert deployment.paged[-1]
    assert deployment.run(120) == {name("abandoned")}
    db.admin.execute("update stopline.job set acknowledged_at = stopline.clock() where id = %s", [job.id])
    deployment.until(name("abandoned"), is_on=False, within=1)
    assert not deployment.paged[-1]


def test_an_uncertain_job_is_told_when_its_review_is_overdue_and_not_before(deployment: Deployment) -> None:
    db = deployment.db
    db.policy("transfer", idempotent=False, review_within=30 * MINUTES)
    db.enqueue("transfer")
    poller = Poller(db)
    job = poller.one("transfer")
    poller.fail(job, Outcome.UNCERTAIN, "sent, no answer")
    assert deployment.until(name("uncertain-overdue"), is_on=True, within=32) >= 29
    assert deployment.paged[-1]
    poller.succeed(job)
    deployment.until(name("uncertain-overdue"), is_on=False, within=1)


def test_work_that_waits_longer_than_its_kind_allows_is_told_as_late(deployment: Deployment) -> None:
    """MO-10: pollers ask and get nothing done."""
    deployment.db.enqueue()
    assert deployment.until(name("late"), is_on=True, within=19) >= 15
    assert deployment.paged[-1]
    assert deployment.on == {name("late")}
    poller = Poller(deployment.db)
    poller.succeed(poller.one())
    deployment.until(name("late"), is_on=False, within=4)


def test_a_kind_that_used_its_days_money_is_told_without_waking_anybody(deployment: Deployment) -> None:
    db = deployment.db
    db.policy("paid", per_attempt_usd="0.20", daily_budget_usd="0.30")
    midnight = (db.now() + timedelta(days=1)).replace(hour=0, minute=0, second=0, microsecond=0)
    db.move((midnight - db.now() - timedelta(minutes=10)).total_seconds())
    deployment.run(1)
    db.enqueue("paid")
    poller = Poller(db)
    poller.succeed(poller.one("paid"), cost="0.20")
    assert deployment.until(name("over-budget"), is_on=True, within=1)
    assert deployment.until(name("over-budget"), is_on=False, within=10) >= 7, "a new day, new money"
    assert not any(deployment.paged[-10:])


def test_failed_attempts_that_end_well_tell_nobody(deployment: Deployment) -> None:
    """AL-05: fails twice, then succeeds; attempts are a trend on the dashboard, not an alarm."""
    db = deployment.db
    made = db.enqueue()
    poller = Poller(db)
    for outcome in (Outcome.TRANSIENT, Outcome.TIMEOUT):
        poller.fail(poller.one(), outcome)
        deployment.run(3)
    poller.succeed(poller.one())
    deployment.run(10)
    assert made.job_id is not None
    assert db.job(made.job_id)["state"] == "succeeded"
    assert deployment.ever_on == set()
    assert not any(deployment.paged)
