"""What the queue holds after attempts whose database, lease or time went away meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from stopline_cli.local.functions import FunctionFailed
from tests.support.blocking import in_background
from tests.support.database import Database
from tests.support.losing_proxy import LosingProxy
from tests.support.real_poller import RealPoller

AS_ADMIN = """
    import psycopg

    def as_admin(job, statement):
        with psycopg.connect(**job.payload["db"], autocommit=True) as admin:
            return admin.execute(statement).fetchall()
"""

END_POLLERS_SESSION = (
    AS_ADMIN
    + """
    def run(job):
        as_admin(job, "select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() "
                      "and application_name = 'stopline-poller'")
        return "done"
"""
)


@pytest.fixture
def poller(db: Database, tmp_path: Path) -> Iterator[RealPoller]:
    with RealPoller(db, tmp_path) as poller:
        yield poller


def admin_place(db: Database) -> dict[str, object]:
    target = db.target("postgres")
    return {"host": target.host, "port": target.port, "dbname": target.dbname, "user": "postgres"}


def states(db: Database) -> list[tuple[str, int, int]]:
    return [(row["state"], row["attempts"], row["fence"]) for row in db.rows("select * from stopline.job order by id")]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_connection_killed_while_the_job_ran_does_not_cost_the_job_its_success(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    """FI-10: the finish goes out again, with its fence, on a new connection."""
    poller.kind("work", END_POLLERS_SESSION, isolation=isolation)
    job = db.enqueue("work", {"db": admin_place(db)}).job_id or 0
    line = poller.poll()
    assert line["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert line["reconnects"] == 1
    assert (db.job(job)["state"], db.job(job)["attempts"]) == ("succeeded", 1)
    assert [attempt["outcome"] for attempt in db.attempts(job)] == ["succeeded"]


def test_a_finish_whose_answer_was_lost_after_the_commit_is_recorded_once(db: Database, poller: RealPoller) -> None:
    """FI-10: the repeat finds the attempt already recorded."""
    poller.kind("work", "def run(job): return 'done'")
    job = db.enqueue("work").job_id or 0
    with LosingProxy(db.target("stopline_worker"), "stopline.succeed") as proxy:
        line = poller.start(STOPLINE_DB_HOST=proxy.target.host).invoke({})
        assert proxy.lost == 1
    assert line["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert (db.job(job)["state"], db.job(job)["result"]) == ("succeeded", "done")
    assert len(db.attempts(job)) == 1


@pytest.mark.parametrize("times", [1, 2, 3])
def test_jobs_whose_claim_was_committed_but_never_answered_run_in_the_same_invocation(
    db: Database, poller: RealPoller, times: int
) -> None:
    """FI-10: the claim is repeated with its token, so it charges one attempt however often its answer is lost."""
    poller.kind("work", "def run(job): return job.attempt")
    job = db.enqueue("work").job_id or 0
    with LosingProxy(db.target("stopline_worker"), "stopline.claim", times) as proxy:
        line = poller.start(STOPLINE_DB_HOST=proxy.target.host).invoke({})
        assert proxy.lost == times
    assert line["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert states(db) == [("succeeded", 1, 1)]
    assert db.job(job)["result"] == 1


def test_jobs_of_an_unanswered_claim_for_which_the_time_has_run_out_are_released(
    db: Database, poller: RealPoller
) -> None:
    """CL-05: they were never started, so they keep their attempt."""
    poller.kind("work", "def run(job): return None", timeout=1, margin=1)
    db.enqueue("work")
    with LosingProxy(db.target("stopline_worker"), "stopline.claim", 2) as proxy:
        line = poller.start(timeout_s=1.7, STOPLINE_DB_HOST=proxy.target.host).invoke({})
        assert proxy.lost == 2
    assert (line["stopped"], line["kinds"]["work"]["released"]) == ("time", 1)
    assert states(db) == [("pending", 0, 1)]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_job_whose_claim_was_answered_too_late_for_its_lease_is_not_started(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    """The invocation has time, the lease has not: the sweeper would end the attempt while it runs."""
    poller.kind("work", "def run(job): return None", timeout=1, margin=1, poller_timeout=2, isolation=isolation)
    db.enqueue("work")
    with LosingProxy(db.target("stopline_worker"), "stopline.claim", 5) as proxy:
        line = poller.start(timeout_s=20, STOPLINE_DB_HOST=proxy.target.host).invoke({})
    assert line["kinds"]["work"]["released"] == 1
    assert states(db) == [("pending", 0, 1)]


def test_a_warm_session_that_points_at_a_read_only_node_is_replaced_and_no_attempt_is_charged_twice(
    db: Database, poller: RealPoller
) -> None:
    """CO-01: 25006 leaves the connection open and is no OperationalError; it is dropped all the same."""
    poller.kind(
        "work",
        """
        def run(job):
            import sys
            session = sys.modules["handler"]._poller().session
            session.rows("select set_config('default_transaction_read_only', 'on', false)")
            return "done"
        """,
        isolation="inline",
    )
    first = db.enqueue("work").job_id or 0
    line = poller.poll()
    assert line["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert line["reconnects"] == 1
    assert (db.job(first)["state"], db.job(first)["attempts"]) == ("succeeded", 1)


def test_a_socket_that_died_while_the_function_was_frozen_costs_one_reconnect_and_no_attempt(
    db: Database, poller: RealPoller
) -> None:
    """CO-07: the same invocation works on a new connection."""
    poller.kind("work", "def run(job): return None")
    poller.poll()
    ended = db.rows(
        "select pg_terminate_backend(pid, 5000) as gone from pg_stat_activity "
        "where application_name = 'stopline-poller' and datname = current_database()"
    )
    assert [row["gone"] for row in ended] == [True]
    db.enqueue("work")
    line = poller.poll()
    assert (line["reconnects"], line["kinds"]["work"]["outcomes"]) == (1, {"succeeded": 1})
    assert states(db) == [("succeeded", 1, 1)]


def test_a_row_that_came_due_after_the_last_invocation_is_seen_and_the_warm_session_is_idle_between(
    db: Database, poller: RealPoller
) -> None:
    """CO-02: the warm connection holds no transaction, so time does not stand still for it."""
    poller.kind("work", "def run(job): return None")
    poller.poll()
    (session,) = db.rows(
        "select state from pg_stat_activity where application_name = 'stopline-poller' and datname = current_database()"
    )
    assert session["state"] == "idle"
    db.enqueue("work", due_at=db.now().replace(microsecond=0))
    assert poller.poll()["kinds"]["work"]["outcomes"] == {"succeeded": 1}


def test_a_database_that_is_away_ends_the_invocation_quietly_and_charges_nothing(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    """CO-07: the poller says so, without an error: the next one comes within a minute."""
    poller.kind("work", "def run(job): return None")
    db.enqueue("work")
    line = poller.start(STOPLINE_DB_HOST=str(tmp_path)).invoke({})
    assert (line["stopped"], line["kinds"]["work"]["status"]) == ("unreachable", "unreachable")
    assert states(db) == [("pending", 0, 0)]


AWAY_ONCE = """
    import psycopg
    from pathlib import Path

    def run(job):
        mark = Path(job.payload["mark"])
        if mark.exists():
            return "done"
        mark.touch()
        name = job.payload["db"]["dbname"]
        with psycopg.connect(**{**job.payload["db"], "dbname": "postgres"}, autocommit=True) as admin:
            admin.execute(f"alter database {name} allow_connections false")
            admin.execute("select pg_terminate_backend(pid, 5000) from pg_stat_activity "
                          "where application_name = 'stopline-poller' and datname = %s", [name])
            try:
                job.effect()
            finally:
                admin.execute(f"alter database {name} allow_connections true")
"""


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_job_that_lost_sight_of_the_queue_before_it_did_anything_keeps_its_attempt(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    """CO-01: an infrastructure error is never recorded as the job's failure."""
    poller.kind("work", AWAY_ONCE, isolation=isolation)
    job = db.enqueue("work", {"db": admin_place(db), "mark": str(poller.jobs_dir / "mark")}).job_id or 0
    line = poller.poll()["kinds"]["work"]
    if db.job(job)["state"] == "pending":
        db.move("1h")
        poller.poll()
    assert line["released"] == 1
    assert (db.job(job)["state"], db.job(job)["attempts"]) == ("succeeded", 1)
    assert [attempt["outcome"] for attempt in db.attempts(job)] == ["released", "succeeded"]


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_job_that_had_spent_money_before_it_lost_sight_of_the_queue_is_not_released(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    """A release would give back the attempt and its money, and the next one would spend it again."""
    source = AWAY_ONCE.replace("job.effect()", 'job.cost("0.25")\n                job.effect()')
    poller.kind("work", source, isolation=isolation, per_attempt_usd="0.5")
    job = db.enqueue("work", {"db": admin_place(db), "mark": str(poller.jobs_dir / "mark")}).job_id or 0
    assert poller.poll()["kinds"]["work"]["released"] == 0
    (attempt,) = db.attempts(job)
    assert (attempt["outcome"], str(attempt["cost_usd"])) == ("transient", "0.250000")


def test_a_job_that_may_have_had_its_effect_before_it_lost_sight_of_the_queue_is_not_released(
    db: Database, poller: RealPoller
) -> None:
    """Nobody can tell what a kind that is not idempotent and does not stamp has sent by then: the attempt counts."""
    poller.kind("work", AWAY_ONCE, idempotent=False)
    job = db.enqueue("work", {"db": admin_place(db), "mark": str(poller.jobs_dir / "mark")}).job_id or 0
    assert poller.poll()["kinds"]["work"]["released"] == 0
    assert [attempt["outcome"] for attempt in db.attempts(job)] == ["transient"]


def test_a_stamp_whose_answer_was_lost_is_a_failed_attempt_and_not_a_release(db: Database, poller: RealPoller) -> None:
    """CO-01: the database knows that the attempt had begun; nothing was sent, so it may be repeated."""
    poller.kind("work", "def run(job): job.effect()", effect="stamped", idempotent=False)
    job = db.enqueue("work").job_id or 0
    with LosingProxy(db.target("stopline_worker"), "stopline.start_effect", 2) as proxy:
        poller.start(STOPLINE_DB_HOST=proxy.target.host).invoke({})
    row = db.job(job)
    assert (row["state"], row["attempts"], row["last_outcome"]) == ("pending", 1, "transient")
    assert row["last_error_class"] == "InfrastructureError"


TAKEN_OVER = (
    AS_ADMIN
    + """
    def run(job):
        if job.attempt > 1:
            raise RuntimeError("not this one")
        as_admin(job, "update stopline_local.clock set shift = shift + interval '1 hour' returning 1")
        as_admin(job, "select * from stopline.sweep()")
        as_admin(job, "update stopline_local.clock set shift = shift + interval '1 hour' returning 1")
        if job.payload["take"]:
            as_admin(job, "select * from stopline.claim('work', 'another', gen_random_uuid(), 1, 100, 'test')")
        if job.payload["fail"]:
            raise RuntimeError("too late")
        return "late"
"""
)


@pytest.mark.parametrize("fail", [False, True], ids=["success", "failure"])
def test_a_finish_after_another_attempt_was_claimed_changes_nothing_and_stands_on_its_attempt(
    db: Database, poller: RealPoller, fail: bool
) -> None:
    """FI-04: the fence of the newer claim decides, not the worker's name."""
    poller.kind("work", TAKEN_OVER)
    job = db.enqueue("work", {"db": admin_place(db), "take": True, "fail": fail}).job_id or 0
    line = poller.poll()["kinds"]["work"]
    row = db.job(job)
    assert (row["state"], row["attempts"], row["fence"], row["claimed_by"]) == ("claimed", 2, 2, "another")
    (first,) = db.attempts(job)
    assert (first["outcome"], first["late_outcome"]) == ("crashed", "transient" if fail else "succeeded")
    assert (line["late"], line["outcomes"]) == (1, {})


def test_a_success_that_comes_after_its_lease_was_swept_is_the_truth_while_no_newer_attempt_exists(
    db: Database, poller: RealPoller
) -> None:
    """FI-04: the job has been done, so it is not done again."""
    poller.kind("work", TAKEN_OVER)
    job = db.enqueue("work", {"db": admin_place(db), "take": False, "fail": False}).job_id or 0
    poller.poll()
    assert (db.job(job)["state"], db.job(job)["result"], db.job(job)["attempts"]) == ("succeeded", "late", 1)


def test_an_effect_is_not_started_by_an_attempt_that_lost_its_lease(db: Database, poller: RealPoller) -> None:
    """FI-04: job.effect() raises LeaseLost before anything is sent."""
    poller.kind(
        "work",
        AS_ADMIN
        + """
    def run(job):
        as_admin(job, "update stopline_local.clock set shift = shift + interval '1 hour' returning 1")
        job.effect()
        open(job.payload["sent"], "w").close()
    """,
        effect="stamped",
        idempotent=False,
    )
    job = db.enqueue("work", {"db": admin_place(db), "sent": f"{poller.jobs_dir}/sent"}).job_id or 0
    poller.poll()
    assert not (poller.jobs_dir / "sent").exists()
    assert (db.job(job)["effect_started_at"], db.job(job)["last_error_class"]) == (None, "LeaseLost")


def test_inline_leftovers_of_a_batch_whose_time_ran_out_are_released_with_their_attempt(
    db: Database, poller: RealPoller
) -> None:
    """CL-05: only the job that ran is charged."""
    poller.kind(
        "slow",
        """
        import time

        def run(job):
            time.sleep(min(job.payload["seconds"], job.seconds_left()))
        """,
        isolation="inline",
        batch=10,
        timeout=1,
        margin=1,
    )
    jobs = [db.enqueue("slow", {"seconds": 1.2 if number == 0 else 0}).job_id or 0 for number in range(10)]
    line = poller.start(timeout_s=2.2).invoke({})
    assert (line["stopped"], line["kinds"]["slow"]["released"]) == ("time", 9)
    assert line["kinds"]["slow"]["outcomes"] == {"succeeded": 1}
    assert states(db) == [("succeeded", 1, 1)] + [("pending", 0, 1)] * 9
    (released,) = db.attempts(jobs[5])
    assert (released["outcome"], "not started" in released["error"]) == ("released", True)


def test_no_child_is_started_when_an_attempt_no_longer_fits_and_what_waits_is_untouched(
    db: Database, poller: RealPoller
) -> None:
    """CL-05: the waiting jobs were never claimed."""
    poller.kind("slow", "import time\ndef run(job): time.sleep(0.8)", timeout=1, margin=1)
    for _ in range(3):
        db.enqueue("slow")
    line = poller.start(timeout_s=2.2).invoke({})
    assert (line["stopped"], line["kinds"]["slow"]["claimed"]) == ("time", 1)
    assert states(db) == [("succeeded", 1, 1)] + [("pending", 0, 0)] * 2


def test_one_unreadable_row_ends_with_its_column_named_and_its_neighbours_run(db: Database, poller: RealPoller) -> None:
    """CL-01: nothing is left claimed by nobody."""
    poller.kind("work", "def run(job): return 'ran'", isolation="inline", batch=10)
    jobs = [db.enqueue("work").job_id or 0 for _ in range(3)]
    db.admin.execute(
        "update stopline.job_data set payload = jsonb_build_object('n', repeat('9', 5000)::numeric) where job_id = %s",
        [jobs[1]],
    )
    line = poller.poll()["kinds"]["work"]
    assert states(db) == [("succeeded", 1, 1), ("abandoned", 1, 1), ("succeeded", 1, 1)]
    (bad,) = db.rows("select stop_reason, last_error from stopline.job where id = %s", jobs[1])
    assert bad["stop_reason"] == "unreadable"
    assert "payload cannot be read: a number has more digits than can be read" in bad["last_error"]
    assert (line["unreadable"], line["outcomes"]) == (1, {"succeeded": 2, "permanent": 1})


def test_whatever_an_inline_job_raises_is_its_own_failure_and_its_neighbours_have_their_outcome(
    db: Database, poller: RealPoller
) -> None:
    """FI-07: SystemExit, KeyboardInterrupt and CancelledError end neither the batch nor the process."""
    poller.kind(
        "work",
        """
        import asyncio, sys

        def run(job):
            if job.payload["raise"]:
                raise {"exit": SystemExit(0), "interrupt": KeyboardInterrupt(), "cancel": asyncio.CancelledError(),
                       "memory": MemoryError(), "recursion": RecursionError("deep")}[job.payload["raise"]]
            return "ran"
        """,
        isolation="inline",
        batch=20,
    )
    raised = ["exit", None, "interrupt", None, "cancel", "memory", None, "recursion"]
    jobs = [db.enqueue("work", {"raise": what}).job_id or 0 for what in raised]
    line = poller.poll()["kinds"]["work"]
    assert line["outcomes"] == {"succeeded": 3, "transient": 5}
    for job, what in zip(jobs, raised, strict=True):
        assert db.job(job)["state"] == ("pending" if what else "succeeded")
        assert [attempt["outcome"] for attempt in db.attempts(job)] == ["transient" if what else "succeeded"]


def test_two_invocations_of_one_event_share_the_rows_and_create_one_occurrence(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    """CL-12: every row is claimed once, and the scheduled job exists once."""
    poller.kind(
        "work",
        """
        def run(job):
            with open(job.payload.get("marks", "/dev/null"), "a") as marks:
                marks.write(f"{job.id}\\n")
        """,
        isolation="inline",
        batch=3,
    )
    for _ in range(10):
        db.enqueue("work", {"marks": str(tmp_path / "marks")})
    event = {"enqueue": "work", "scheduled_for": "2026-01-01T00:00:00Z"}
    one, two = poller.start(), poller.start()
    with in_background(lambda: one.invoke(event)) as first, in_background(lambda: two.invoke(event)) as second:
        pass
    lines = [future.result()["kinds"]["work"] for future in (first, second)]
    assert sum(line["outcomes"].get("succeeded", 0) for line in lines) == 11
    assert sum(line["tick"]["created"] for line in lines) == 1
    assert states(db) == [("succeeded", 1, 1)] * 11
    assert sorted((tmp_path / "marks").read_text().split()) == sorted(
        str(row["id"]) for row in db.rows("select id from stopline.job where key is null")
    )


def test_a_kind_that_cannot_be_imported_claims_nothing_and_the_others_are_served(
    db: Database, poller: RealPoller
) -> None:
    """CL-11: no row is discarded, completed or charged by a worker that has no code for it."""
    poller.kind("broken", "from . import missing_neighbour\ndef run(job): return None")
    poller.kind("sound", "def run(job): return None")
    db.enqueue("broken")
    db.enqueue("sound")
    with pytest.raises(FunctionFailed) as failed:
        poller.poll()
    assert "kind broken" in failed.value.message
    assert "broken/handler.py: import failed: ImportError" in failed.value.message
    assert states(db) == [("pending", 0, 0), ("succeeded", 1, 1)]


def test_a_kind_that_an_old_poller_does_not_know_waits_and_its_age_is_seen(db: Database, poller: RealPoller) -> None:
    """CL-11: during a deploy the new kind's jobs wait for the new poller."""
    poller.kind("old", "def run(job): return None")
    db.policy("new", due_age=60)
    db.enqueue("new")
    db.move("1h")
    assert list(poller.poll()["kinds"]) == ["old"]
    assert states(db) == [("pending", 0, 0)]
    (health,) = db.rows("select stopline.health() as read")
    assert health["read"]["totals"]["KindsLate"] == 1
    assert health["read"]["totals"]["OldestDueAge"] >= 3600


def test_an_occurrence_of_a_kind_whose_code_is_broken_waits_in_the_queue(db: Database, poller: RealPoller) -> None:
    poller.kind("broken", "raise RuntimeError('no')")
    with pytest.raises(FunctionFailed, match="import failed: RuntimeError: no"):
        poller.poll(enqueue="broken", scheduled_for="2026-01-01T00:00:00Z")
    assert states(db) == [("pending", 0, 0)]


def test_an_occurrence_that_came_while_the_database_was_away_is_enqueued_in_the_same_invocation(
    db: Database, poller: RealPoller
) -> None:
    """A schedule fires once: no later invocation brings it again."""
    poller.kind("work", "def run(job): return None")
    with LosingProxy(db.target("stopline_worker"), "stopline.tick", 4) as proxy:
        function = poller.start(STOPLINE_DB_HOST=proxy.target.host)
        line = function.invoke({"enqueue": "work", "scheduled_for": "2026-01-01T00:00:00Z"})
        assert proxy.lost == 4
    assert line["kinds"]["work"]["outcomes"] == {"succeeded": 1}
    assert states(db) == [("succeeded", 1, 1)]


def test_an_occurrence_that_could_not_be_enqueued_fails_the_invocation_by_kind_and_time(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    """Then the event is a dead letter and somebody hears of it."""
    poller.kind("work", "def run(job): return None")
    function = poller.start(timeout_s=4, STOPLINE_DB_HOST=str(tmp_path))
    with pytest.raises(FunctionFailed, match=r"PollFailed: kind work: its occurrence of 2026-01-01T00:00:00\+00:00"):
        function.invoke({"enqueue": "work", "scheduled_for": "2026-01-01T00:00:00Z"})


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (
            {"enqueue": "other", "scheduled_for": "2026-01-01T00:00:00Z"},
            "enqueue: 'other' is not a kind of this poller",
        ),
        ({"enqueue": "work"}, "scheduled_for: must be an ISO 8601 time"),
        ({"enqueue": "work", "scheduled_for": "2026-01-01T00:00:00"}, "scheduled_for"),
        ({"enqueue": "work", "scheduled_for": "soon"}, "scheduled_for: must be an ISO 8601 time"),
    ],
)
def test_a_bad_event_is_refused_with_its_field_and_rule(
    db: Database, poller: RealPoller, event: dict[str, str], rule: str
) -> None:
    poller.kind("work", "def run(job): return None")
    with pytest.raises(FunctionFailed, match=rule):
        poller.poll(**event)
    assert states(db) == []


def test_a_claim_in_the_name_of_another_installation_is_refused_and_says_so(db: Database, poller: RealPoller) -> None:
    poller.kind("work", "def run(job): return None")
    db.enqueue("work")
    line = poller.start(STOPLINE_INSTALLATION="a restored copy").invoke({})
    assert (line["stopped"], line["kinds"]["work"]["status"]) == ("foreign", "foreign")
    assert states(db) == [("pending", 0, 0)]
