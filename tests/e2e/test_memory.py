"""Attempts that need more memory than there is."""

import pytest

from tests.e2e.conftest import Start
from tests.e2e.harness.deployment import Deployment
from tests.e2e.harness.memory import NoMemoryGroup, kills, memory_group
from tests.support.database import Database


def test_an_attempt_beyond_its_processs_memory_fails_by_itself_and_its_neighbour_succeeds(
    db: Database, faults: Deployment, start: Start
) -> None:
    poller = start(faults.function("poller of work", db))
    greedy = db.enqueue("work", {"do": "own_memory"}).job_id or 0
    after = db.enqueue("work", {"do": "succeed"}).job_id or 0
    result = poller.invoke()
    assert result["kinds"]["work"]["outcomes"] == {"transient": 1, "succeeded": 1}
    assert db.job(greedy)["last_error_class"] == "MemoryError"
    assert db.job(after)["state"] == "succeeded"


def test_an_attempt_that_uses_up_the_functions_memory_is_the_one_that_the_kernel_kills(
    db: Database, faults: Deployment, start: Start
) -> None:
    """The supervisor survives it and says which job it was."""
    function = faults.function("poller of work", db)
    greedy = db.enqueue("work", {"do": "shared_memory"}).job_id or 0
    after = db.enqueue("work", {"do": "succeed"}).job_id or 0
    try:
        with memory_group(function.memory_mb) as group:
            poller = start(function, group)
            result = poller.invoke()
            assert kills(group) == 1
            poller.kill()
    except NoMemoryGroup as error:
        pytest.skip(str(error))
    assert result["kinds"]["work"]["outcomes"] == {"crashed": 1, "succeeded": 1}
    assert db.job(greedy)["last_error_class"] == "SIGKILL"
    assert "memory" in db.job(greedy)["last_error"]
    assert db.job(after)["state"] == "succeeded"
    assert len(poller.log.init_ms) == 1
