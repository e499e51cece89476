"""What people do to jobs and kinds from the command line: the engine decides, the command says what happens next."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from stopline.errors import InvalidInput, Refused
from stopline.states import OperatorAnswer, Outcome, State, StopReason
from stopline.store.operate import JobChange, OperateStore
from stopline_cli.actor import local_actor
from stopline_cli.local.postgres import EmbeddedPostgres
from tests.support.blocking import in_background, wait_until_blocked
from tests.support.command import Command, local_database, local_postgres
from tests.support.database import Database
from tests.support.poller import Poller

WHY = ("--reason", "the fault is mended")
CHECKED = ("--effects-checked", "asked the receiver")


@pytest.fixture(scope="module")
def state() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="stopline-") as name:
        yield Path(name)


@pytest.fixture(scope="module")
def postgres(state: Path) -> Iterator[EmbeddedPostgres]:
    with local_postgres(state) as server:
        yield server


@pytest.fixture
def db(postgres: EmbeddedPostgres) -> Iterator[Database]:
    with local_database(postgres) as database:
        yield database


@pytest.fixture
def stopline(state: Path, db: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(state, monkeypatch, capsys)


def ended(db: Database, outcome: Outcome = Outcome.PERMANENT, **options: object) -> int:
    """A job whose only attempt so far ended with `outcome`."""
    made = db.enqueue(**options)  # type: ignore[arg-type]
    assert made.job_id is not None
    poller = Poller(db)
    (job,) = [one for one in poller.claim(batch=100).jobs if one.id == made.job_id]
    poller.fail(job, outcome)
    return job.id


def waiting(db: Database) -> int:
    made = db.enqueue()
    assert made.job_id is not None
    return made.job_id


def told(db: Database, job: int) -> list[tuple[str, str, str]]:
    """The audit of a job: action, actor and reason; without what the worker wrote."""
    rows = db.rows("select action, actor, reason from stopline.event where job_id = %s order by id", job)
    return [(row["action"], row["actor"], row["reason"]) for row in rows if row["action"] != "stopped"]


def test_the_actor_is_printed_and_written_and_is_this_machines_user_unless_given(
    stopline: Command, db: Database
) -> None:
    """OP-03: who acted is never guessed in silence."""
    db.policy()
    first, second = waiting(db), waiting(db)
    done = stopline("cancel", first, *WHY)
    assert done.status == 0, done.err
    assert f"Acting as {local_actor()} (this machine knows you so; --actor gives another name)." in done.out
    assert f"job {first}: cancelled. It will not run again unless somebody replays it." in done.out
    assert told(db, first) == [("cancelled", local_actor(), WHY[1])]

    done = stopline("cancel", second, *WHY, "--actor", "ada", "--local")
    assert done.out.startswith("Acting as ada.\n")
    assert told(db, second) == [("cancelled", "ada", WHY[1])]


def test_several_jobs_are_done_one_by_one_and_one_refusal_stops_no_other(stopline: Command, db: Database) -> None:
    """OP-01"""
    db.policy()
    done_job = Poller(db)
    succeeded = waiting(db)
    done_job.succeed(done_job.one())
    first, last = waiting(db), waiting(db)
    done = stopline("cancel", first, succeeded, 987654321, last, first, *WHY)
    assert done.status == 1
    assert f"job {succeeded}: refused: job {succeeded} has ended (succeeded, completed) and cannot be" in done.out
    assert "job 987654321: refused: job: there is no job 987654321" in done.out
    assert "2 jobs of 4 not done." in done.out
    assert [db.job(job)["state"] for job in (first, last)] == ["cancelled", "cancelled"]

    again = stopline("cancel", first, succeeded, *WHY, "--json")
    assert again.status == 1
    assert (again.answer["action"], again.answer["failed"], again.answer["actor_given"]) == ("cancel", 1, False)
    harmless, refused = again.answer["results"]
    assert (harmless["job"], harmless["answer"], harmless["state"]) == (first, "already_done", "cancelled")
    assert "nothing was added" in harmless["next"]
    assert (refused["job"], refused["answer"]) == (succeeded, "refused")
    assert len(told(db, first)) == 1


def test_cancelling_a_running_job_says_that_its_attempt_decides(stopline: Command, db: Database) -> None:
    db.policy()
    job = waiting(db)
    poller = Poller(db)
    claimed = poller.one()
    assert f"job {job}: cancel requested: the running attempt decides." in stopline("cancel", job, *WHY).out
    assert "a cancel was requested before: the running attempt decides." in stopline("cancel", job, *WHY).out
    poller.fail(claimed)
    assert db.job(job)["state"] == "cancelled"


def test_cancelling_an_uncertain_job_without_a_statement_is_refused_with_the_receivers_reference(
    stopline: Command, db: Database
) -> None:
    """OP-02"""
    db.policy(idempotent=False)
    job = ended(db, Outcome.UNCERTAIN)
    refused = stopline("cancel", job, *WHY)
    assert refused.status == 1
    assert f"effects_checked: job {job} is uncertain, its effect may exist" in refused.out
    assert stopline("cancel", job, *WHY, *CHECKED).status == 0
    (row,) = db.rows("select effects_checked from stopline.event where job_id = %s and action = 'cancelled'", job)
    assert row["effects_checked"] == CHECKED[1]


def test_a_replay_needs_a_statement_and_opens_a_round_that_a_poller_claims(stopline: Command, db: Database) -> None:
    """OP-02: a replay without a word on earlier effects is not taken."""
    db.policy()
    job = ended(db)
    missing = stopline("replay", job, *WHY)
    assert missing.status == 2
    assert "--effects-checked" in missing.err
    done = stopline("replay", job, *WHY, *CHECKED)
    assert f"job {job}: replayed: a new round is open and due now" in done.out
    assert "already replayed: its new round is pending" in stopline("replay", job, *WHY, *CHECKED).out
    assert Poller(db).one().id == job


def test_a_replay_past_its_deadline_takes_a_new_one_as_a_time_or_a_span(stopline: Command, db: Database) -> None:
    """The span counts from the database's time, which a test has moved."""
    db.policy(deadline=60)
    jobs = [ended(db), ended(db)]
    db.move("1 day")
    refused = stopline("replay", jobs[0], *WHY, *CHECKED)
    assert refused.status == 1
    assert "Give the replay a new deadline that lies ahead." in refused.out
    db.freeze()
    assert stopline("replay", jobs[0], *WHY, *CHECKED, "--deadline", "2h").status == 0
    assert (db.job(jobs[0])["deadline_at"] - db.now()).total_seconds() == 7200
    far = "2100-01-31T12:00:00+02:00"
    assert stopline("replay", jobs[1], *WHY, *CHECKED, "--deadline", far).status == 0
    assert f"{db.job(jobs[1])['deadline_at']:%Y-%m-%d %H:%M %z}" == "2100-01-31 10:00 +0000"
    for wrong in ("tomorrow", "2100-01-31T12:00:00", "9999-12-31T23:00:00-05:00"):
        done = stopline("replay", jobs[1], *WHY, *CHECKED, "--deadline", wrong)
        assert (done.status, "error: --deadline: " in done.err) == (1, True)


def test_a_key_that_is_taken_while_a_replay_is_under_way_refuses_it_and_stops_no_other(
    stopline: Command, db: Database
) -> None:
    """The other job's enqueue has not committed when the replay looks who holds the key."""
    db.policy()
    job, other = ended(db, key="k"), ended(db)
    assert stopline("release-key", job, *WHY).status == 0
    producer = db.connect("stopline_producer", autocommit=False)
    producer.execute("select * from stopline.enqueue('work', '{}', 'k')")
    store = OperateStore(db.session("stopline_operator"))
    store.session.rows("select stopline.read_clock()")
    (backend,) = db.rows(
        "select pid from pg_stat_activity where usename = 'stopline_operator' and datname = %s", db.name
    )
    with in_background(lambda: store.replay(job, "ada", "mended", "looked")) as replay:
        wait_until_blocked(db.admin, backend["pid"])
        producer.commit()
    with pytest.raises(Refused, match=rf"^job {job}: another job took its key 'k' meanwhile\. "):
        replay.result()
    done = stopline("replay", job, other, *WHY, *CHECKED)
    assert (done.status, db.job(job)["state"], db.job(other)["state"]) == (1, "abandoned", "pending")
    assert f"job {job}: its key 'k' is held by job {other + 1}" in done.out


def test_a_kind_that_can_ask_its_receiver_is_asked_before_a_replay(stopline: Command, db: Database) -> None:
    db.policy(idempotent=False, reconciles=True)
    job = ended(db)
    done = stopline("replay", job, *WHY, *CHECKED, "--actor", "ada")
    assert f"job {job}: replay requested: the receiver is asked first, by the kind's poller" in done.out
    assert "a replay was requested before" in stopline("replay", job, *WHY, *CHECKED).out
    text = stopline("show", job).out
    assert f"ada asked for a replay, because {WHY[1]}." in text
    assert "Decides     the receiver" in text


@pytest.mark.parametrize(
    ("flag", "words", "then"),
    [
        ("--applied", "succeeded: its effect exists, so it is not run again.", "succeeded"),
        ("--not-applied", "pending: its effect does not exist, so it is tried again after a backoff", "pending"),
    ],
)
def test_a_person_reconciles_an_unknown_outcome(
    stopline: Command, db: Database, flag: str, words: str, then: str
) -> None:
    db.policy(idempotent=False)
    job = ended(db, Outcome.UNCERTAIN)
    assert stopline("reconcile", job, *WHY, *CHECKED).status == 2
    assert words in stopline("reconcile", job, flag, *WHY, *CHECKED).out
    assert "already reconciled so" in stopline("reconcile", job, flag, *WHY, *CHECKED).out
    assert db.job(job)["state"] == then


def test_not_applied_at_the_cap_says_that_no_attempt_is_left(stopline: Command, db: Database) -> None:
    db.policy(idempotent=False, max_attempts=1)
    job = ended(db, Outcome.UNCERTAIN)
    done = stopline("reconcile", job, "--not-applied", *WHY, *CHECKED)
    assert "abandoned (attempts_exhausted): its effect does not exist, and no limit leaves another attempt." in done.out


def test_an_acknowledged_job_keeps_its_key_until_that_is_released(stopline: Command, db: Database) -> None:
    db.policy()
    job = ended(db, key="k")
    assert (
        "acknowledged: seen, and nothing else. It stays abandoned (permanent_failure)" in stopline("ack", job, *WHY).out
    )
    assert "already acknowledged" in stopline("ack", job, *WHY).out
    assert db.enqueue(key="k").answer == "held"
    assert "its key is free: new work may have it" in stopline("release-key", job, *WHY).out
    assert "it holds no key; nothing was added." in stopline("release-key", job, *WHY).out
    assert db.enqueue(key="k").answer == "created"


def test_a_pause_ends_by_a_person_a_time_or_a_span(stopline: Command, db: Database) -> None:
    db.policy()
    waiting(db)
    db.freeze()
    assert "kind work: paused until somebody resumes it. No attempt starts" in stopline("pause", "work", *WHY).out
    assert "kind work: already paused" in stopline("pause", "work", *WHY).out
    assert Poller(db).claim().status == "paused"
    assert "resumed: the next poll claims what is due." in stopline("resume", "work", *WHY).out
    assert "was not paused" in stopline("resume", "work", *WHY).out

    done = stopline("pause", "work", *WHY, "--for", "90m", "--json")
    until = done.answer["results"][0]["paused_until"]
    (row,) = db.rows("select paused_until - stopline.clock() as span from stopline.kind where name = 'work'")
    assert row["span"].total_seconds() == 5400
    assert stopline("pause", "work", *WHY, "--until", until, "--json").answer["results"][0]["answer"] == "already_done"
    assert stopline("pause", "work", *WHY, "--until", until, "--for", "1h").err.startswith("error: --until and --for: ")
    past = stopline("pause", "work", *WHY, "--until", "2020-01-01T00:00:00Z")
    assert (past.status, "is already past" in past.out) == (1, True)


def test_an_unknown_kind_is_refused_with_those_that_are_known(stopline: Command, db: Database) -> None:
    db.policy()
    done = stopline("pause", "worc", *WHY)
    assert (done.status, "kind: 'worc' is not known. Known kinds: work." in done.out) == (1, True)


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (("cancel", 1, "--reason", " "), 1, "error: --reason: says nothing. Fix: "),
        (("cancel", 1, *WHY, "--actor", ""), 1, "error: --actor: says nothing. Fix: "),
        (("cancel", 1), 2, "Missing option '--reason'"),
        (("cancel", *WHY), 2, "Missing argument 'JOB'"),
        (("cancel", 1, "x", *WHY), 2, "Invalid value for 'JOB'"),
        (("cancel", 2**63, *WHY), 2, "Invalid value for 'JOB'"),
        (("cancel", 1, *WHY, "--local", "--on", "demo"), 1, "error: --local: names another database than --on demo."),
        (("pause", *WHY), 2, "Missing argument 'KIND'"),
    ],
)
def test_a_request_that_says_too_little_does_nothing(
    stopline: Command, db: Database, words: tuple[object, ...], status: int, message: str
) -> None:
    """OP-03: no action without a reason and a name."""
    db.policy()
    waiting(db)
    done = stopline(*words)
    assert (done.status, message in done.err) == (status, True), done.err
    assert db.rows("select from stopline.event where action = 'cancelled'") == []


def test_what_is_no_text_is_refused_before_the_database_is_asked(stopline: Command, db: Database) -> None:
    """A byte that is not UTF-8 arrives as a lone surrogate; a reason may be long, not endless."""
    db.policy()
    job = waiting(db)
    for reason, rule in (("bad \udcff", "reason: is not text in UTF-8"), ("x" * 2001, "reason: is 2,001 bytes")):
        done = stopline("cancel", job, "--reason", reason)
        assert (done.status, rule in done.out) == (1, True)
    assert db.job(job)["state"] == "pending"


def test_shown_text_of_others_begins_no_line_and_moves_no_terminal(stopline: Command, db: Database) -> None:
    db.policy(owner="team\nJob 1 · work · succeeded")
    job = ended(db, key="k\nJob 2 · work · succeeded \x1b[31m\u202e")
    assert stopline("ack", job, "--reason", "[bold]a[/bold]\nJob 3\x07", "--actor", "eve\x1b[0m\nJob 4").status == 0
    for words in (("show", job), ("jobs",), ("reasons",), ("exposure",)):
        out = stopline(*words).out
        assert not {"\x1b", "\x07", "\u202e", "\r"} & set(out)
        assert [
            line for line in out.splitlines() if line.lstrip().startswith("Job ") and f"Job {job}" not in line
        ] == []
    assert "[bold]a[/bold]" in stopline("show", job).out


def test_the_library_gives_small_answers_and_the_databases_own_words(db: Database) -> None:
    db.policy()
    job = ended(db)
    store = OperateStore(db.session("stopline_operator"))
    abandoned = (State.ABANDONED, StopReason.PERMANENT_FAILURE)
    assert store.acknowledge(job, "ada", "seen") == JobChange(job, OperatorAnswer.DONE, *abandoned)
    assert store.acknowledge(job, "ada", "seen") == JobChange(job, OperatorAnswer.ALREADY_DONE, *abandoned)
    assert store.replay(job, "ada", "mended", "looked") == JobChange(job, OperatorAnswer.DONE, State.PENDING, None)
    with pytest.raises(Refused, match=rf"^job {job} is pending; only an abandoned job is acknowledged$"):
        store.acknowledge(job, "ada", "seen")
    with pytest.raises(InvalidInput, match=r"^job: there is no job 77$"):
        store.cancel(77, "ada", "seen")
    for wrong in (0, 2**63, True, "1"):
        with pytest.raises(InvalidInput, match=r"^job: is "):
            store.cancel(wrong, "ada", "seen")  # type: ignore[arg-type]
    with pytest.raises(InvalidInput, match=r"^actor: holds a NUL character"):
        store.cancel(job, "a\0", "seen")
    with pytest.raises(InvalidInput, match=r"^actor: must be a text of 1 to 2000 bytes"):
        store.cancel(job, " ", "seen")


def test_each_answer_of_an_operator_can_be_met(db: Database) -> None:
    db.policy()
    job = waiting(db)
    store = OperateStore(db.session("stopline_operator"))
    poller = Poller(db)
    claimed = poller.one()
    met = {store.cancel(job, "ada", "stop").answer, store.cancel(job, "ada", "stop").answer}
    poller.fail(claimed)
    met.add(store.pause_kind("work", "ada", "stop").answer)
    assert met == set(OperatorAnswer)


def test_a_call_whose_connection_dies_is_said_again_and_adds_one_event(db: Database) -> None:
    db.policy()
    job = waiting(db)
    session = db.session("stopline_operator")
    store = OperateStore(session)
    store.pause_kind("work", "ada", "stop")
    with psycopg.connect(**db.target("postgres").conninfo(None), autocommit=True) as admin:
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'stopline_operator'"
            " and datname = current_database()"
        )
    assert store.cancel(job, "ada", "stop").answer == "done"
    assert session.reconnects == 1
    assert len(told(db, job)) == 1
