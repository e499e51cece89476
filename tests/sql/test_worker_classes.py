"""What an answer means for the job, from the exception in the handler to the row in the database."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.database import Database
from tests.support.real_poller import RealPoller

SENDS = """
    from stopline import HttpError

    class LedgerLocked(Exception):
        pass

    CLASSES = {409: "transient", LedgerLocked: "permanent"}

    def run(job):
        if job.payload == "locked":
            raise LedgerLocked("until the end of the month")
        raise HttpError(job.payload, b"refused")
"""


@pytest.fixture
def poller(db: Database, tmp_path: Path) -> Iterator[RealPoller]:
    with RealPoller(db, tmp_path, 120) as poller:
        yield poller


def test_a_revoked_token_keeps_a_thousand_jobs_and_an_invalid_one_is_abandoned_at_once(
    db: Database, poller: RealPoller
) -> None:
    """FI-15: 401 for 1,000 jobs leaves all of them retryable, 422 ends its job with class and reason."""
    poller.kind("send", SENDS, isolation="inline", batch=200, timeout=30, margin=60)
    db.admin.execute(
        "insert into stopline.job (kind, state, max_attempts, due_at, created_at)"
        " select 'send', 'pending', 5, stopline.clock(), stopline.clock() from generate_series(1, 1000)"
    )
    db.admin.execute("insert into stopline.job_data (job_id, payload) select id, '401' from stopline.job")
    invalid = db.enqueue("send", 422).job_id or 0
    assert poller.poll()["kinds"]["send"]["outcomes"] == {"transient": 1000, "permanent": 1}
    assert db.rows(
        "select state, stop_reason, attempts, last_error_class, count(*) as jobs from stopline.job"
        " where id <> %s group by 1, 2, 3, 4",
        invalid,
    ) == [{"state": "pending", "stop_reason": None, "attempts": 1, "last_error_class": "HTTP 401", "jobs": 1000}]
    row = db.job(invalid)
    assert (row["state"], row["stop_reason"], row["last_error_class"]) == ("abandoned", "permanent_failure", "HTTP 422")
    assert "refused" in row["last_error"]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_kinds_own_classes_decide_in_either_isolation(db: Database, poller: RealPoller, isolation: str) -> None:
    poller.kind("send", SENDS, isolation=isolation)
    conflict, locked = (db.enqueue("send", payload).job_id or 0 for payload in (409, "locked"))
    poller.poll()
    assert (db.job(conflict)["state"], db.job(conflict)["last_outcome"]) == ("pending", "transient")
    assert (db.job(locked)["state"], db.job(locked)["last_error_class"]) == ("abandoned", "LedgerLocked")


def test_a_wrong_class_is_named_and_nothing_is_claimed(db: Database, poller: RealPoller) -> None:
    poller.kind("send", "CLASSES = {409: 'again'}\ndef run(job): pass\n")
    job = db.enqueue("send").job_id or 0
    with pytest.raises(Exception, match=r"CLASSES\[409\]: must be one of transient, permanent, uncertain"):
        poller.poll()
    assert db.job(job)["attempts"] == 0
