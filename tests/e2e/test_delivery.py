"""Events as the template's schedules send them, once and twice."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Start
from tests.e2e.harness.deployment import SCHEDULED_TIME, Deployment
from tests.e2e.harness.instance import Instance
from tests.support.database import Database

NOON = "2026-11-29T12:00:00Z"


def deliver(event: str, instances: Sequence[Instance]) -> list[dict[str, Any]]:
    """One event, handed to several environments at once."""
    with ThreadPoolExecutor(len(instances)) as pool:
        return list(pool.map(lambda instance: instance.invoke(event.replace(SCHEDULED_TIME, NOON)), instances))


@pytest.mark.parametrize("kind", ["work", "batch"])
def test_a_tick_that_is_delivered_twice_at_once_runs_every_due_job_once(
    db: Database, faults: Deployment, start: Start, tmp_path: Path, kind: str
) -> None:
    """CL-12: two environments, one event, ten due jobs."""
    function = faults.function(f"poller of {kind}", db)
    environments = [start(function), start(function)]
    (event,) = function.events
    deliver(event, environments)
    calls = tmp_path / "calls"
    jobs = [db.enqueue(kind, {"do": "succeed", "file": str(calls)}).job_id for _ in range(10)]
    results = deliver(event, environments)
    assert sorted(calls.read_text().splitlines()) == sorted(f"{job} 1" for job in jobs)
    assert sum(result["kinds"][kind]["claimed"] for result in results) == 10
    rows = db.rows("select state, attempts from stopline.job")
    assert rows == [{"state": "succeeded", "attempts": 1}] * 10


def test_an_occurrence_that_is_delivered_twice_is_one_job(db: Database, faults: Deployment, start: Start) -> None:
    """CL-12: its key is the time that it was scheduled for."""
    function = faults.function("poller of periodic", db)
    (event,) = (event for event in function.events if SCHEDULED_TIME in event)
    environments = [start(function), start(function)]
    deliver(event, environments)
    deliver(event, environments)
    (row,) = db.rows("select state, key from stopline.job")
    assert row["state"] == "succeeded"
    assert "2026-11-29" in row["key"]


def test_every_function_answers_the_events_of_its_schedules(db: Database, faults: Deployment, start: Start) -> None:
    scheduled = {name for name, function in faults.functions.items() if function.events}
    assert {"sweeper", "monitor", "poller of work", "poller of periodic"} <= scheduled
    for name in sorted(scheduled - {"poller of unloadable"}):
        instance = start(faults.function(name, db))
        for event in instance.function.events:
            (result,) = deliver(event, [instance])
            assert isinstance(result, dict)
        instance.kill()
