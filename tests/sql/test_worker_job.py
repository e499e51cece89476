"""What a handler can do with its job, the same in a child and inline."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.database import Database
from tests.support.real_poller import RealPoller

both = pytest.mark.parametrize("isolation", ["process", "inline"])


@pytest.fixture
def poller(db: Database, tmp_path: Path) -> Iterator[RealPoller]:
    with RealPoller(db, tmp_path) as poller:
        yield poller


def run_once(db: Database, poller: RealPoller, source: str, payload: object = None, **policy: Any) -> Any:
    """Runs one job of kind `work`, and returns its row."""
    poller.kind("work", source, **policy)
    job = db.enqueue("work", payload).job_id or 0
    poller.poll()
    return db.job(job)


@both
def test_a_job_knows_its_attempt_its_effect_key_and_how_long_it_may_run(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    row = run_once(
        db,
        poller,
        """
        def run(job):
            return [job.id, job.kind, job.key, job.payload, job.attempt, job.attempts_left,
                    job.effect_key, job.checkpoint, 1.5 < job.seconds_left() <= 2,
                    0 < job.timeout_for_wire() < job.seconds_left()]
        """,
        {"n": 1},
        isolation=isolation,
    )
    assert row["result"][:6] == [row["id"], "work", None, {"n": 1}, 1, 4]
    assert row["result"][6].endswith(f"-{row['id']}")
    assert row["result"][7:] == [None, True, True]


@both
def test_a_checkpoint_is_found_by_the_next_attempt(db: Database, poller: RealPoller, isolation: str) -> None:
    row = run_once(
        db,
        poller,
        """
        def run(job):
            if job.checkpoint is None:
                job.save_checkpoint({"done": [1, 2]})
                assert job.checkpoint == {"done": [1, 2]}
                raise RuntimeError("half way")
            return job.checkpoint
        """,
        isolation=isolation,
    )
    assert (row["state"], row["checkpoint"]) == ("pending", {"done": [1, 2]})
    db.move("1h")
    poller.poll()
    assert db.job(row["id"])["result"] == {"done": [1, 2]}


@both
def test_a_checkpoint_that_cannot_be_stored_is_refused_to_the_handler_by_its_place(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    row = run_once(
        db,
        poller,
        """
        from stopline import InvalidInput

        def run(job):
            refusals = []
            for value in ({"at": float("nan")}, "x" * 70000):
                try:
                    job.save_checkpoint(value)
                except InvalidInput as error:
                    refusals.append(error.field)
            return refusals
        """,
        isolation=isolation,
    )
    assert row["result"] == ["checkpoint.at", "checkpoint"]


@both
def test_the_effect_is_stamped_before_the_call_returns(db: Database, poller: RealPoller, isolation: str) -> None:
    place = db.target("postgres")
    row = run_once(
        db,
        poller,
        """
        import psycopg

        def run(job):
            with psycopg.connect(**job.payload, user="postgres") as watcher:
                stamp = "select effect_started_at is not null from stopline.job"
                before = watcher.execute(stamp).fetchone()[0]
                watcher.commit()
                job.effect()
                return [before, watcher.execute(stamp).fetchone()[0]]
        """,
        {"host": place.host, "port": place.port, "dbname": place.dbname},
        isolation=isolation,
    )
    assert row["result"] == [False, True]


@both
def test_costs_add_up_and_what_is_no_amount_is_noted_and_never_raised(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    row = run_once(
        db,
        poller,
        """
        from decimal import Decimal

        class Odd:
            def __str__(self):
                raise RuntimeError("no")
            __repr__ = __str__

        def run(job):
            job.cost(0.1)
            job.cost("0.2", calls=3)
            job.cost(Decimal("0.0000001"))
            for value in (-1, float("nan"), float("inf"), "much", None, Odd(), True, 10**400):
                job.cost(value)
            job.cost(0, calls=-1)
        """,
        isolation=isolation,
    )
    (attempt,) = db.attempts(row["id"])
    assert str(attempt["cost_usd"]) == "0.300001"
    notes = poller.events("job_note")
    assert len(notes) == 9
    assert all("job.cost ignored" in note["text"] for note in notes)


@both
def test_the_step_after_the_last_one_stops_the_job_as_step_limit(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    row = run_once(
        db,
        poller,
        """
        def run(job):
            for number in job.steps():
                print("step", number)
        """,
        isolation=isolation,
        max_steps=3,
    )
    assert (row["state"], row["stop_reason"], row["steps"]) == ("abandoned", "step_limit", 3)


@both
def test_job_connect_is_the_kinds_own_role_and_commits_only_a_clean_exit(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    db.admin.execute("create table public.told (what text)")
    db.admin.execute("grant select, insert on public.told to stopline_support")
    poller.kind(
        "work",
        """
        def run(job):
            with job.connect() as conn:
                conn.execute("insert into public.told values ('kept')")
                who = conn.execute("select current_user::text").fetchone()[0]
            try:
                with job.connect() as conn:
                    conn.execute("insert into public.told values ('lost')")
                    raise LookupError
            except LookupError:
                return who
        """,
        isolation=isolation,
    )
    job = db.enqueue("work").job_id or 0
    poller.start(STOPLINE_ROLE_WORK="stopline_support").invoke({})
    assert db.job(job)["result"] == "stopline_support"
    assert db.rows("select what from public.told") == [{"what": "kept"}]


@both
def test_job_connect_without_a_role_says_what_to_set(db: Database, poller: RealPoller, isolation: str) -> None:
    source = "def run(job):\n    with job.connect(): pass"
    row = run_once(db, poller, source, isolation=isolation)
    assert row["last_error_class"] == "Refused"
    assert "[access] database_role" in row["last_error"]
    assert "STOPLINE_ROLE_WORK" in row["last_error"]


@both
def test_a_client_sends_one_request_and_gives_up_before_the_attempt_does(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    source = """
        def run(job):
            config = job.client("bedrock-runtime").meta.config
            fits = config.connect_timeout + config.read_timeout < job.seconds_left()
            return [config.retries["total_max_attempts"], fits, config.region_name]
    """
    row = run_once(db, poller, source, isolation=isolation, timeout=5)
    assert row["result"] == [1, True, "eu-central-1"]


def test_the_sdk_that_one_child_used_is_loaded_before_the_next_child_is_made(db: Database, poller: RealPoller) -> None:
    poller.kind(
        "work",
        """
        import sys, time

        def run(job):
            loaded = "boto3" in sys.modules
            begun = time.perf_counter()
            job.client("bedrock-runtime")
            return [loaded, time.perf_counter() - begun]
        """,
        timeout=10,
    )
    first, second = (db.enqueue("work").job_id or 0 for _ in range(2))
    poller.poll()
    third = db.enqueue("work").job_id or 0
    poller.poll()
    assert [db.job(job)["result"][0] for job in (first, second, third)] == [False, True, True]


@both
def test_the_environment_of_a_job_has_its_own_values_and_none_of_ours(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    poller.kind("work", "def run(job): return dict(job.environment)", isolation=isolation)
    job = db.enqueue("work").job_id or 0
    poller.start(CONNECTOR_URL="http://127.0.0.1:1/", AWS_SECRET_ACCESS_KEY="not for jobs").invoke({})
    seen = db.job(job)["result"]
    assert seen["CONNECTOR_URL"] == "http://127.0.0.1:1/"
    assert [name for name in seen if name.startswith("STOPLINE_") or "SECRET" in name] == []


@pytest.mark.parametrize(
    ("effect", "idempotent", "state"),
    [("whole_attempt", True, "pending"), ("stamped", False, "pending"), ("whole_attempt", False, "uncertain")],
)
def test_a_crash_without_a_stamp_is_retried_unless_the_whole_attempt_counts_as_the_effect(
    db: Database, poller: RealPoller, effect: str, idempotent: bool, state: str
) -> None:
    """RE-09: the kind's policy decides what a dead process means."""
    source = "import os\ndef run(job): os._exit(1)"
    row = run_once(db, poller, source, effect=effect, idempotent=idempotent)
    assert (row["state"], row["last_outcome"]) == (state, "crashed" if state == "pending" else row["last_outcome"])
