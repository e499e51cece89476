"""What the monitor writes to stdout, read back as CloudWatch would: one blob of totals a run, or nothing at all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline_cli.local.functions import FunctionFailed, FunctionProcess
from tests.support.database import Database
from tests.support.real_poller import RealPoller

TOTALS = {
    "Due",
    "OldestDueAge",
    "OldestUnfinishedAge",
    "Claimed",
    "Stuck",
    "AbandonedOpen",
    "Abandoned",
    "Uncertain",
    "LastAttempt",
    "SpendToday",
    "WorstCaseSpend",
    "OldestTransactionAge",
    "Breakers",
    "KindsLate",
    "KindsStuck",
    "KindsAbandoned",
    "KindsUncertainOverdue",
    "KindsOverBudget",
    "KindsPaused",
    "PollersSilent",
    "SweeperSilent",
    "Heartbeat",
}


class Monitor:
    """The real function, and the blobs of each of its invocations."""

    def __init__(self, db: Database) -> None:
        self.function = FunctionProcess("monitor", "lambdas/monitor/handler.py", db.environment("stopline_monitor"), 10)
        self._read = 0

    def run(self) -> list[dict[str, Any]]:
        """One invocation; the EMF blobs that it wrote."""
        self.function.invoke({})
        return self.blobs()

    def blobs(self) -> list[dict[str, Any]]:
        lines = self.function.log[self._read :]
        self._read = len(self.function.log)
        parsed = [json.loads(line, parse_constant=_refuse) for line in lines]
        return [line for line in parsed if "_aws" in line]


def _refuse(name: str) -> None:
    raise AssertionError(f"{name} is not JSON")


@pytest.fixture
def monitor(db: Database) -> Iterator[Monitor]:
    monitor = Monitor(db)
    with monitor.function:
        yield monitor


def metrics(blob: dict[str, Any]) -> dict[str, float]:
    """The values of a blob's metrics; the blob must have one directive with one dimension set."""
    (directive,) = blob["_aws"]["CloudWatchMetrics"]
    assert directive["Namespace"] == "Stopline"
    return {metric["Name"]: blob[metric["Name"]][0] for metric in directive["Metrics"]}


def dimensions(blob: dict[str, Any]) -> dict[str, str]:
    (directive,) = blob["_aws"]["CloudWatchMetrics"]
    (names,) = directive["Dimensions"]
    return {name: blob[name] for name in names}


def test_an_empty_database_gives_one_blob_in_which_every_total_is_zero(monitor: Monitor) -> None:
    """MO-04: max(age) over no rows is 0, not null; only a figure that could not be read is missing."""
    (blob,) = monitor.run()
    seen = metrics(blob)
    assert TOTALS - seen.keys() <= {"OldestTransactionAge"}
    assert seen.keys() <= TOTALS
    assert {name: value for name, value in seen.items() if value} in (
        {"Heartbeat": 1.0},
        {"Heartbeat": 1.0, "OldestTransactionAge": seen.get("OldestTransactionAge")},
    )
    assert dimensions(blob) == {"service": "stopline"}


def test_a_drained_queue_sends_zeros_on_every_run(db: Database, monitor: Monitor, tmp_path: Path) -> None:
    """MO-03: nothing sticks at its last value because a group of no rows was not sent."""
    with RealPoller(db, tmp_path) as poller:
        poller.kind("work", "def run(job): return None", isolation="inline", batch=10)
        for _ in range(5):
            db.enqueue("work")
        (before,) = monitor.run()
        poller.poll()
        (first,), (second,) = monitor.run(), monitor.run()
    assert metrics(before)["Due"] == 5
    assert metrics(first).keys() == metrics(second).keys() == metrics(before).keys()
    for blob in (first, second):
        assert (metrics(blob)["Due"], metrics(blob)["OldestDueAge"], metrics(blob)["Claimed"]) == (0, 0, 0)
        (row,) = blob["kinds"]
        assert (row["kind"], row["due"], row["claimed"]) == ("work", 0, 0)


def test_each_kind_that_asks_for_metrics_has_a_blob_with_its_own_value(db: Database, monitor: Monitor) -> None:
    """MO-01: three kinds, three blobs, the right value in each; kinds that did not ask are plain fields only."""
    for kind, jobs in (("billing", 0), ("email", 5), ("export", 7)):
        db.policy(kind, own_metrics=True)
        for _ in range(jobs):
            db.enqueue(kind)
    db.policy("plain")
    blobs = monitor.run()
    own = {dimensions(blob)["kind"]: metrics(blob)["Due"] for blob in blobs if "kind" in dimensions(blob)}
    assert own == {"billing": 0, "email": 5, "export": 7}
    (totals,) = [blob for blob in blobs if dimensions(blob) == {"service": "stopline"}]
    assert metrics(totals)["Due"] == 12
    assert [row["kind"] for row in totals["kinds"]] == ["billing", "email", "export", "plain"]
    assert len(blobs) == 4


def test_a_database_that_cannot_be_read_fails_the_run_and_sends_no_number_and_no_heartbeat(
    db: Database, monitor: Monitor
) -> None:
    """MO-03, MO-08: no blob at all, never a zero."""
    monitor.run()
    db.admin.execute("revoke execute on function stopline.health() from stopline_monitor")
    with pytest.raises(FunctionFailed):
        monitor.function.invoke({})
    assert monitor.blobs() == []


def test_after_a_failed_run_the_next_one_has_exactly_the_usual_dimensions(db: Database, monitor: Monitor) -> None:
    """MO-01: nothing of a failed run leaks into the next one of the same warm process."""
    db.policy("work", own_metrics=True)
    usual = [dimensions(blob) for blob in monitor.run()]
    db.admin.execute("revoke execute on function stopline.health() from stopline_monitor")
    with pytest.raises(FunctionFailed):
        monitor.function.invoke({})
    monitor.blobs()
    db.admin.execute("grant execute on function stopline.health() to stopline_monitor")
    assert [dimensions(blob) for blob in monitor.run()] == usual


def test_a_reading_that_hangs_is_ended_by_the_database_before_the_function_is(db: Database, monitor: Monitor) -> None:
    """MO-08: the read is given up in time for an error, and no heartbeat pretends that it had worked."""
    (role,) = db.rows("select rolconfig from pg_roles where rolname = 'stopline_monitor'")
    assert [value for value in role["rolconfig"] if value.startswith("statement_timeout=")]
    db.admin.execute("alter function stopline.health() rename to fast_health")
    db.admin.execute(
        "create function stopline.health() returns jsonb language sql security definer as "
        """$$ select '{"totals": {}, "kinds": []}'::jsonb from pg_sleep(60) $$"""
    )
    db.admin.execute(f"alter role stopline_monitor in database {db.name} set statement_timeout = '200ms'")
    with pytest.raises(FunctionFailed, match="InfrastructureError: 57014"):
        monitor.function.invoke({})
    assert monitor.blobs() == []
