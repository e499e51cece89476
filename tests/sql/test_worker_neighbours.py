"""What goes wrong with one claim, one attempt or one row costs the attempts beside it nothing."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import LiteralString

import pytest
from psycopg import sql

from stopline_cli.local.functions import FunctionFailed
from tests.support.blocking import in_background
from tests.support.database import Database
from tests.support.losing_proxy import LosingProxy
from tests.support.real_poller import RealPoller


@pytest.fixture
def poller(db: Database, tmp_path: Path) -> Iterator[RealPoller]:
    with RealPoller(db, tmp_path) as poller:
        yield poller


def until(condition: Callable[[], bool], what: str) -> None:
    give_up = time.monotonic() + 5
    while not condition():
        assert time.monotonic() < give_up, f"not within 5 s: {what}"
        time.sleep(0.005)


def admin_place(db: Database) -> dict[str, object]:
    target = db.target("postgres")
    return {"host": target.host, "port": target.port, "dbname": target.dbname, "user": "postgres"}


def test_a_claim_that_the_database_refuses_ends_nothing_that_runs_and_fails_the_invocation_afterwards(
    db: Database, poller: RealPoller
) -> None:
    """The attempt beside it was counted and paid for: it is finished, not killed and left claimed."""
    poller.kind(
        "work",
        """
        import time, psycopg

        def run(job):
            if job.payload["revoke"]:
                with psycopg.connect(**job.payload["db"]) as admin:
                    admin.execute("revoke execute on all functions in schema stopline from stopline_worker")
                    admin.execute("grant execute on function stopline.succeed to stopline_worker")
                return "revoked"
            time.sleep(0.5)
            return "finished"
        """,
        children=2,
        memory_mb=1024,
    )
    place = admin_place(db)
    slow, _, third = (db.enqueue("work", {"revoke": number == 1, "db": place}).job_id or 0 for number in range(3))
    with pytest.raises(FunctionFailed, match=r"PollFailed: kind work: .*permission denied for function claim"):
        poller.poll()
    assert (db.job(slow)["state"], db.job(slow)["result"]) == ("succeeded", "finished")
    assert (db.job(third)["state"], db.job(third)["attempts"]) == ("pending", 0)


@pytest.mark.parametrize("function", ["succeed", "fail"])
@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_finish_that_the_database_cannot_take_just_now_is_repeated_and_nothing_is_claimed_meanwhile(
    db: Database, poller: RealPoller, isolation: str, function: str
) -> None:
    """The work is done: a right that a deploy takes and gives back must not have it done again."""
    poller.kind(
        "work",
        """
        import psycopg

        def run(job):
            if "db" in job.payload:
                with psycopg.connect(**job.payload["db"]) as admin:
                    admin.execute("revoke execute on function stopline.succeed, stopline.fail from stopline_worker")
            if job.payload["function"] == "fail":
                raise RuntimeError("broken")
        """,
        isolation=isolation,
    )
    first = db.enqueue("work", {"function": function, "db": admin_place(db)}).job_id or 0
    second = db.enqueue("work", {"function": function}).job_id or 0
    with in_background(poller.poll) as invocation:
        until(lambda: bool(poller.events("finish_waits")), "the finish is refused")
        assert db.job(second)["fence"] == 0
        db.admin.execute("grant execute on function stopline.succeed, stopline.fail to stopline_worker")
    assert invocation.result()["kinds"]["work"].get("lost") is None
    outcome = "succeeded" if function == "succeed" else "transient"
    assert [attempt["outcome"] for job in (first, second) for attempt in db.attempts(job)] == [outcome, outcome]


def refuse(db: Database, table: LiteralString, when: LiteralString) -> None:
    """From now on the database refuses such rows the way a constraint that we forgot would."""
    db.admin.execute(
        "create function public.refuse() returns trigger language plpgsql as "
        "$$ begin raise check_violation using message = 'no', constraint = 'forgotten'; end $$"
    )
    db.admin.execute(
        sql.SQL(
            "create trigger refuse before insert or update on stopline.{} for each row when ({}) "
            "execute function public.refuse()"
        ).format(sql.Identifier(table), sql.SQL(when))
    )


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_result_that_the_database_refuses_is_replaced_and_the_work_not_done_again(
    db: Database, poller: RealPoller, isolation: str
) -> None:
    """FI-08: also when the refusal is no matter of JSON."""
    poller.kind("work", "def run(job): return job.payload", isolation=isolation, batch=3)
    jobs = [db.enqueue("work", payload).job_id or 0 for payload in ("fine", "poison", "well")]
    refuse(db, "job_data", "new.result = '\"poison\"'")
    poller.poll()
    rows = [db.job(job) for job in jobs]
    assert {(row["state"], row["attempts"]) for row in rows} == {("succeeded", 1)}
    assert [rows[0]["result"], rows[1]["result"]["stopline"], rows[2]["result"]] == [
        "fine",
        "result not stored",
        "well",
    ]


def test_a_success_that_the_database_refuses_whatever_it_says_does_not_keep_its_batch_from_being_recorded(
    db: Database, poller: RealPoller
) -> None:
    poller.kind("work", "def run(job): return None", isolation="inline", batch=3)
    for key in ("fine", "poison", "well"):
        db.enqueue("work", key=key)
    refuse(db, "job", "new.key = 'poison' and new.state = 'succeeded'")
    line = poller.poll()["kinds"]["work"]
    assert (line["outcomes"], line["lost"]) == ({"succeeded": 2}, 1)


def test_an_error_text_that_the_database_refuses_is_left_out_and_the_attempt_recorded(
    db: Database, poller: RealPoller
) -> None:
    """FI-01: saving the error must not lose the outcome."""
    poller.kind("work", "def run(job): raise RuntimeError('poison')")
    job = db.enqueue("work").job_id or 0
    refuse(db, "attempt", "new.error like '%poison%'")
    poller.poll()
    (attempt,) = db.attempts(job)
    assert (attempt["outcome"], attempt["error_class"]) == ("transient", "RuntimeError")
    assert attempt["error"] == "the database refused the error's text"


def test_rows_that_cannot_be_read_do_not_keep_a_free_child_waiting_for_the_one_that_runs(
    db: Database, poller: RealPoller
) -> None:
    poller.kind(
        "work",
        """
        import time

        def run(job):
            begun = time.time()
            time.sleep(job.payload)
            return [begun, time.time()]
        """,
        children=2,
        memory_mb=1024,
    )
    slow, bad, worse, last = (db.enqueue("work", seconds).job_id or 0 for seconds in (1, 0, 0, 0))
    db.admin.execute(
        "update stopline.job_data set payload = jsonb_build_object('n', repeat('9', 5000)::numeric) "
        "where job_id in (%s, %s)",
        [bad, worse],
    )
    poller.poll()
    assert db.job(last)["result"][0] < db.job(slow)["result"][1]


def test_a_claim_that_was_committed_and_stays_unanswered_for_seconds_is_released_before_the_invocation_ends(
    db: Database, poller: RealPoller
) -> None:
    """FI-10: its jobs were never started. Left to the lease, they would count as crashed, or uncertain as here."""
    poller.kind("work", "def run(job): return None", idempotent=False, margin=30)
    job = db.enqueue("work").job_id or 0
    with LosingProxy(db.target("stopline_worker"), "stopline.claim", 12) as proxy:
        line = poller.start(timeout_s=30, STOPLINE_DB_HOST=proxy.target.host).invoke({})
        assert proxy.lost == 12
    assert (line["stopped"], line["kinds"]["work"]["released"]) == ("unreachable", 1)
    assert (db.job(job)["state"], db.job(job)["attempts"]) == ("pending", 0)


@pytest.mark.parametrize(
    "message",
    [
        '{"type":"cost","usd":"1","calls":Infinity}',
        '{"type":"cost","usd":"NaN","calls":1}',
        '{"type":"cost","usd":"-5","calls":1}',
        '{"type":"cost","usd":"1e900","calls":1}',
        '{"type":"failed","outcome":"transient","error_class":"E","error":"e","stop_reason":null,"queue_lost":false,'
        f'"retry_after":1{"0" * 400}}}',
    ],
)
def test_numbers_on_the_channel_that_no_handler_could_send_are_a_crash_of_that_attempt_alone(
    db: Database, poller: RealPoller, message: str
) -> None:
    poller.kind(
        "work",
        """
        import struct, time

        def run(job):
            if not job.payload:
                time.sleep(0.3)
                return "untouched"
            body = job.payload.encode()
            job._ledger._channel._socket.sendall(struct.pack("!I", len(body)) + body)
            time.sleep(60)
        """,
        children=2,
        memory_mb=1024,
    )
    bad = db.enqueue("work", message).job_id or 0
    beside = db.enqueue("work", "").job_id or 0
    poller.poll()
    assert db.job(beside)["result"] == "untouched"
    assert (db.job(bad)["last_outcome"], db.job(bad)["last_error_class"]) == ("crashed", "ProtocolError")


def test_an_answer_that_a_handler_did_not_wait_for_is_not_taken_for_the_answer_to_its_next_question(
    db: Database, poller: RealPoller
) -> None:
    """A stale "ok" would let job.effect() return before the database has the stamp."""
    poller.kind(
        "work",
        """
        import signal, psycopg

        def ring(*_):
            raise TimeoutError

        def run(job):
            signal.signal(signal.SIGALRM, ring)
            with psycopg.connect(**job.payload) as holder:
                holder.execute("select from stopline.job where id = %s for update", [job.id])
                signal.setitimer(signal.ITIMER_REAL, 0.2)
                try:
                    job.save_checkpoint({"page": 1})
                except TimeoutError:
                    pass
            return next(job.steps())
        """,
        max_steps=3,
    )
    job = db.enqueue("work", admin_place(db)).job_id or 0
    poller.poll()
    assert (db.job(job)["state"], db.job(job)["result"], db.job(job)["steps"]) == ("succeeded", 1, 1)


def test_a_claim_that_waits_for_a_lock_does_not_keep_the_finish_of_what_runs_waiting_past_one_lock_timeout(
    db: Database, poller: RealPoller, tmp_path: Path
) -> None:
    """The lease of a finished job runs on meanwhile: past it, the job would be done again."""
    db.admin.execute(f"alter role stopline_worker in database {db.name} set lock_timeout = '300ms'")
    poller.kind(
        "work",
        """
        import time
        from pathlib import Path

        def run(job):
            Path(job.payload["ready"]).touch()
            while not Path(job.payload["locked"]).exists():
                time.sleep(0.001)
            time.sleep(job.payload["seconds"])
        """,
        children=2,
        memory_mb=1024,
        concurrency=2,
    )
    ready, locked = tmp_path / "ready", tmp_path / "locked"
    payload = {"ready": str(ready), "locked": str(locked)}
    jobs = [db.enqueue("work", payload | {"seconds": seconds}).job_id or 0 for seconds in (0, 0.2, 0)]
    holder = db.connect("postgres", autocommit=False)
    with in_background(poller.poll):
        until(ready.exists, "an attempt has begun")
        holder.execute("select from stopline.kind for update")
        locked.touch()
        begun = time.monotonic()
        until(lambda: db.job(jobs[1])["state"] == "succeeded", "the slower job is finished")
        taken = time.monotonic() - begun
        holder.commit()
    assert taken < 1.2
    assert db.job(jobs[2])["state"] == "succeeded"
