"""Why jobs stopped, grouped: one bug, five bugs, or one thing upstream?"""

from datetime import timedelta

from stopline.states import Outcome
from stopline.store.upkeep import UpkeepStore
from tests.support.database import Database
from tests.support.poller import Poller
from tests.support.rows import insert_job

H = timedelta(hours=1)


def reasons(db: Database) -> UpkeepStore:
    return UpkeepStore(db.session("stopline_monitor"))


def stop(db: Database, fingerprint: str, error: str = "HTTP 500", **columns: object) -> int:
    return insert_job(db, "abandoned", last_fingerprint=fingerprint, last_error=error, **columns)


def test_stopped_jobs_are_grouped_by_kind_reason_and_fingerprint_the_largest_group_first(db: Database) -> None:
    for _ in range(3):
        stop(db, "f1")
    stop(db, "f2")
    stop(db, "f1", stop_reason="attempts_exhausted")
    stop(db, "f1", kind="other")
    groups = [
        (group["kind"], group["stop_reason"], group["fingerprint"], group["jobs"]) for group in reasons(db).reasons()
    ]
    assert groups[0] == ("work", "permanent_failure", "f1", 3)
    assert sorted(groups[1:]) == [
        ("other", "permanent_failure", "f1", 1),
        ("work", "attempts_exhausted", "f1", 1),
        ("work", "permanent_failure", "f2", 1),
    ]


def test_a_group_tells_its_newest_error_its_times_an_example_and_how_many_nobody_has_seen(db: Database) -> None:
    db.freeze()
    stop(db, "f1", "HTTP 500 at 10:00", finished_at=-2 * H, last_error_class="HttpError")
    stop(db, "f1", "HTTP 500 at 11:00", finished_at=-1 * H, last_error_class="HttpError", acknowledged_at=-1 * H)
    newest = stop(db, "f1", "HTTP 500 at 12:00", finished_at=0 * H, last_error_class="HttpError")
    (group,) = reasons(db).reasons()
    assert (group["jobs"], group["unacknowledged"], group["example_job"]) == (3, 2, newest)
    assert (group["error_class"], group["error"]) == ("HttpError", "HTTP 500 at 12:00")
    assert (group["first_at"], group["last_at"]) == tuple(
        f"{time:%Y-%m-%dT%H:%M:%S.%f}Z" for time in (db.now() - 2 * H, db.now())
    )


def test_only_the_asked_kind_and_time_are_told(db: Database) -> None:
    db.freeze()
    stop(db, "f1", finished_at=-5 * H)
    stop(db, "f2", finished_at=-1 * H)
    stop(db, "f3", kind="other", finished_at=-1 * H)
    assert [group["fingerprint"] for group in reasons(db).reasons("work", db.now() - 2 * H)] == ["f2"]


def test_jobs_that_are_open_done_or_cancelled_have_no_group(db: Database) -> None:
    for state in ("pending", "claimed", "uncertain", "succeeded", "cancelled"):
        insert_job(db, state)
    assert reasons(db).reasons() == []


def test_the_same_fault_of_many_jobs_is_one_group_though_each_text_differs(db: Database) -> None:
    """The fingerprint leaves out what differs from job to job."""
    db.policy(max_attempts=1)
    poller = Poller(db)
    for number in range(4):
        db.enqueue()
        poller.fail(poller.one(), Outcome.TRANSIENT, f"invoice {number * 7919} is locked by request 0x{number:08x}")
    (group,) = reasons(db).reasons()
    assert (group["jobs"], group["stop_reason"]) == (4, "attempts_exhausted")
