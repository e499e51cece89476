"""Attempts that need more memory than there is."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.harness.deployment import Deployment
from tests.e2e.harness.function import Function
from tests.e2e.harness.instance import InvocationFailed
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
    with limited(function) as group, start(function, group) as poller:
        result = poller.invoke()
        assert kills(group) == 1
    assert result["kinds"]["work"]["outcomes"] == {"crashed": 1, "succeeded": 1}
    assert db.job(greedy)["last_error_class"] == "SIGKILL"
    assert "memory" in db.job(greedy)["last_error"]
    assert db.job(after)["state"] == "succeeded"
    assert len(poller.log.init_ms) == 1


def test_an_inline_attempt_that_uses_up_the_memory_takes_the_function_down_and_its_lease_frees_the_job(
    db: Database, faults: Deployment, start: Start, tmp_path: Path
) -> None:
    """LD-09: nothing is left to record it, so the sweeper does; the next invocation starts anew and serves others."""
    function = faults.function("poller of batch", db)
    sweeper = start(faults.function("sweeper", db))
    calls = str(tmp_path / "calls")
    with limited(function) as group, start(function, group) as poller:
        poller.invoke()
        greedy = db.enqueue("batch", {"file": calls, "do": "take_memory"}).job_id or 0
        with pytest.raises(InvocationFailed) as failed:
            poller.invoke()
        assert failed.value.error_type == "Runtime.ExitError"
        assert kills(group) == 1
        assert db.job(greedy)["state"] == "claimed"
        other = db.enqueue("batch", {"file": calls}).job_id or 0
        assert poller.invoke()["kinds"]["batch"]["outcomes"] == {"succeeded": 1}
    assert db.job(other)["state"] == "succeeded"
    db.move(seconds=function.timeout_s + 2)
    assert sweeper.invoke()["sweep"]["crashed_to_pending"] == 1
    assert (db.job(greedy)["state"], db.job(greedy)["crashes"]) == ("pending", 1)


@contextmanager
def limited(function: Function) -> Iterator[Path]:
    """A memory cgroup with as much memory as the function has; without one the test is skipped and says why."""
    try:
        with memory_group(function.memory_mb) as group:
            yield group
    except NoMemoryGroup as error:
        pytest.skip(str(error))
