"""Invocations and attempts that end badly, and what is left for the next ones."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Start
from tests.e2e.harness.deployment import Deployment
from tests.e2e.harness.instance import Instance, InvocationFailed
from tests.support.database import Database


def time_out(poller: Instance) -> None:
    with pytest.raises(InvocationFailed) as failed:
        poller.invoke()
    assert failed.value.error_type == "Sandbox.Timedout"


def happened(sweeper: Instance) -> dict[str, int]:
    """The transitions of one sweep."""
    return {name: jobs for name, jobs in sweeper.invoke()["sweep"].items() if jobs}


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not yet buried does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_function_killed_at_its_timeout_takes_its_attempt_along_and_the_lease_frees_the_job(
    db: Database, faults: Deployment, start: Start, tmp_path: Path
) -> None:
    """LD-09: the lease is over soon after the function, the next invocation serves others, nothing is stuck."""
    poller, sweeper = start(faults.function("poller of hangs", db)), start(faults.function("sweeper", db))
    poller.invoke()
    pid_file = tmp_path / "pid"
    job = db.enqueue("hangs", {"hang": True, "pid_file": str(pid_file)}).job_id or 0
    db.freeze()
    begun = db.now()
    time_out(poller)
    assert poller.processes() == []
    assert not alive(int(pid_file.read_text()))
    row = db.job(job)
    assert row["state"] == "claimed"
    assert (row["lease_until"] - begun).total_seconds() <= poller.function.timeout_s + 1

    other = db.enqueue("hangs", {}).job_id or 0
    assert poller.invoke()["kinds"]["hangs"]["outcomes"] == {"succeeded": 1}
    assert db.job(other)["state"] == "succeeded"
    assert happened(sweeper) == {}

    db.move(seconds=poller.function.timeout_s + 1)
    assert happened(sweeper) == {"crashed_to_pending": 1}
    assert db.job(job)["state"] == "pending"
    (attempt,) = db.attempts(job)
    assert attempt["outcome"] == "crashed"
    assert attempt["error"]


def test_a_batch_whose_function_was_killed_at_its_timeout_is_freed_by_its_lease_job_by_job(
    db: Database, faults: Deployment, start: Start, tmp_path: Path
) -> None:
    """LD-09: inline, where nothing but the end of the function ends an attempt that hangs."""
    poller, sweeper = start(faults.function("poller of batch", db)), start(faults.function("sweeper", db))
    poller.invoke()
    calls = str(tmp_path / "calls")
    first = db.enqueue("batch", {"file": calls}).job_id or 0
    hanging = db.enqueue("batch", {"file": calls, "do": "hang"}).job_id or 0
    last = db.enqueue("batch", {"file": calls}).job_id or 0
    db.freeze()
    begun = db.now()
    time_out(poller)
    for job in (first, hanging, last):
        row = db.job(job)
        assert row["state"] == "claimed"
        assert (row["lease_until"] - begun).total_seconds() <= poller.function.timeout_s + 1

    db.move(seconds=poller.function.timeout_s + 2)
    other = db.enqueue("batch", {"file": calls}).job_id or 0
    assert poller.invoke()["kinds"]["batch"]["outcomes"] == {"succeeded": 1}
    assert db.job(other)["state"] == "succeeded"
    assert happened(sweeper) == {"crashed_to_pending": 3}
    assert [db.job(job)["state"] for job in (first, hanging, last)] == ["pending"] * 3
    assert all(db.job(job)["crashes"] == 1 for job in (first, hanging, last))


def test_a_handler_that_calls_sys_exit_fails_its_own_attempt_and_not_the_function(
    db: Database, faults: Deployment, start: Start
) -> None:
    """CL-13: one job's failure must not fail the invocation, which Lambda might then repeat."""
    poller = start(faults.function("poller of work", db))
    leaving = db.enqueue("work", {"do": "leave"}).job_id or 0
    after = db.enqueue("work", {"do": "succeed"}).job_id or 0
    result = poller.invoke()
    assert result["kinds"]["work"]["outcomes"] == {"transient": 1, "succeeded": 1}
    assert (db.job(leaving)["state"], db.job(leaving)["last_error_class"]) == ("pending", "SystemExit")
    assert db.job(after)["state"] == "succeeded"
    assert len(poller.log.init_ms) == 1


def test_an_inline_handler_that_calls_sys_exit_fails_its_own_attempt_and_not_the_function(
    db: Database, faults: Deployment, start: Start, tmp_path: Path
) -> None:
    poller = start(faults.function("poller of batch", db))
    calls = str(tmp_path / "calls")
    leaving = db.enqueue("batch", {"file": calls, "do": "leave"}).job_id or 0
    after = db.enqueue("batch", {"file": calls}).job_id or 0
    result = poller.invoke()
    assert result["kinds"]["batch"]["outcomes"] == {"transient": 1, "succeeded": 1}
    assert (db.job(leaving)["state"], db.job(leaving)["last_error_class"]) == ("pending", "SystemExit")
    assert db.job(after)["state"] == "succeeded"
    assert len(poller.log.init_ms) == 1


def test_a_handler_that_exits_while_it_is_imported_fails_the_invocation_by_name_and_charges_no_job(
    db: Database, faults: Deployment, start: Start
) -> None:
    poller = start(faults.function("poller of unloadable", db))
    job = db.enqueue("unloadable", {}).job_id or 0
    for _ in range(2):
        with pytest.raises(InvocationFailed) as failed:
            poller.invoke()
        assert failed.value.error_type == "PollFailed"
        assert "kind unloadable" in failed.value.message
        assert "no configuration found" in failed.value.message
    assert (db.job(job)["state"], db.job(job)["attempts"]) == ("pending", 0)
    assert len(poller.log.init_ms) == 1


def test_a_process_that_an_attempt_left_behind_is_gone_when_its_invocation_ends(
    db: Database, faults: Deployment, start: Start, tmp_path: Path
) -> None:
    """Lambda would freeze it, and it would go on in the middle of another job's invocation."""
    poller = start(faults.function("poller of work", db))
    pid_file = tmp_path / "pid"
    db.enqueue("work", {"do": "leave_a_daemon", "pid_file": str(pid_file)})
    assert poller.invoke()["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert not alive(int(pid_file.read_text()))
    assert poller.processes() == [poller.runtime_pid]


def test_an_attempt_that_prints_megabytes_succeeds_and_leaves_whole_bounded_lines(
    db: Database, faults: Deployment, start: Start
) -> None:
    """CloudWatch cuts an event at 256 KiB: every line stays far below and is one JSON object."""
    poller = start(faults.function("poller of work", db))
    job = db.enqueue("work", {"do": "shout"}).job_id or 0
    assert poller.invoke()["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert db.job(job)["result"] == "said"
    assert len(poller.log.objects) == len(poller.log.lines)
    assert max(len(line) for line in poller.log.lines) < 16 * 1024
    output = poller.log.events("output")
    assert output[0]["text"].startswith("000000 x")
    assert {line["job"] for line in output} == {job}
    assert sum(len(line["text"]) for line in output) <= 64 * 1024
    (cut,) = poller.log.events("output_cut")
    assert cut["dropped_bytes"] > 8_000_000


def test_a_result_that_is_too_large_is_replaced_by_a_mark_and_the_job_succeeds(
    db: Database, faults: Deployment, start: Start
) -> None:
    poller = start(faults.function("poller of work", db))
    job = db.enqueue("work", {"do": "answer_at_length"}).job_id or 0
    result = poller.invoke()
    assert result["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert len(json.dumps(result)) < 1000
    assert db.job(job)["result"]["stopline"] == "result not stored"
