"""Cold, warm and thawed starts of a poller."""

from tests.e2e.conftest import Start
from tests.e2e.harness.deployment import Deployment
from tests.support.database import Database


def test_a_cold_start_runs_what_is_due_and_a_warm_one_keeps_its_process_and_its_connection(
    db: Database, faults: Deployment, start: Start
) -> None:
    poller = start(faults.function("poller of work", db))
    pids, backends = set(), set()
    for _ in range(3):
        job = db.enqueue("work", {"do": "succeed"}).job_id or 0
        result = poller.invoke()
        assert result["kinds"]["work"]["outcomes"] == {"succeeded": 1}
        assert result["reconnects"] == 0
        assert db.job(job)["state"] == "succeeded"
        assert poller.processes() == [poller.runtime_pid]
        pids.add(poller.runtime_pid)
        backends.update(sessions(db))
    assert (len(pids), len(backends), len(poller.log.init_ms)) == (1, 1, 1)


def test_a_poller_whose_backend_died_while_it_was_frozen_connects_anew_and_runs_what_is_due(
    db: Database, faults: Deployment, start: Start
) -> None:
    """CO-01: between two invocations an environment stands still, and sees the end of its session only then."""
    poller = start(faults.function("poller of work", db))
    poller.invoke()
    before = poller.runtime_pid
    with poller.frozen():
        (backend,) = sessions(db)
        db.rows("select pg_terminate_backend(%s, 5000)", backend)
        job = db.enqueue("work", {"do": "succeed"}).job_id or 0
    result = poller.invoke()
    assert (result["reconnects"], result["kinds"]["work"]["outcomes"]) == (1, {"succeeded": 1})
    assert poller.runtime_pid == before
    (attempt,) = db.attempts(job)
    assert attempt["outcome"] == "succeeded"
    blob = poller.log.metrics[-1]
    assert blob["Reconnects"] == [1.0]


def sessions(db: Database) -> list[int]:
    """The pollers' database sessions."""
    query = "select pid from pg_stat_activity where datname = current_database() and application_name like %s"
    return [row["pid"] for row in db.rows(query, "stopline-poller%")]
