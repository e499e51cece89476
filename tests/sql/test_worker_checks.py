"""Unknown outcomes are resolved by asking the receiver, by the real poller, and never by sending again."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline.states import Outcome, ReceiverAnswer, RecordAnswer
from stopline.store.worker import Check, UnreadableCheck, WorkerStore
from stopline_cli.local.functions import FunctionFailed
from stopline_cli.local.postgres import EmbeddedPostgres
from tests.support.blocking import in_background, until
from tests.support.database import Database, fresh_database
from tests.support.operator import Operator, events
from tests.support.poller import PLENTY, Poller
from tests.support.real_poller import RealPoller

KIND = {"idempotent": False, "reconciles": True, "settle": 120, "max_checks": 3, "timeout": 30, "margin": 15}
APPLIED, NOT_APPLIED, UNKNOWN = ReceiverAnswer


def checks_of(db: Database, job: int) -> list[tuple[int, int, str, str]]:
    rows = db.rows("select * from stopline.reconcile_check where job_id = %s order by round, number", job)
    return [(row["round"], row["number"], row["answer"], row["detail"]) for row in rows]


def due(db: Database, store: WorkerStore, limit: int = 5) -> list[Check | UnreadableCheck]:
    return store.due_checks("work", "w1", limit, PLENTY, db.identity)


def one(db: Database, store: WorkerStore) -> Check:
    (check,) = due(db, store)
    assert isinstance(check, Check)
    return check


def uncertain(db: Database, poller: Poller, **policy: object) -> int:
    """A job whose only attempt was sent and lost, settled since."""
    db.policy("work", **(KIND | policy))
    job = db.enqueue(payload={"batch": 7}).job_id or 0
    poller.fail(poller.one(), Outcome.UNCERTAIN, "sent, and the answer was lost")
    db.move("2m")
    return job


def test_a_question_carries_the_job_as_its_attempt_left_it(db: Database) -> None:
    poller = Poller(db)
    job = uncertain(db, poller, max_attempts=4)
    check = one(db, poller.store)
    assert (check.round, check.number) == (1, 1)
    assert (check.job.id, check.job.attempt, check.job.attempts_left, check.job.fence) == (job, 1, 3, 1)
    assert (check.job.payload, check.job.checkpoint) == ({"batch": 7}, None)
    assert check.job.effect_key == f"{check.job.effect_key.rpartition('-')[0]}-{job}"
    assert check.job.lease_seconds == 45


def test_a_row_that_cannot_be_decoded_is_named_and_costs_its_neighbour_nothing(db: Database) -> None:
    """CL-01 for questions: the answer is unknown, until a person looks."""
    poller = Poller(db)
    bad = uncertain(db, poller)
    db.admin.execute(
        "update stopline.job_data set payload = ('9' || repeat('0', 5000))::jsonb where job_id = %s", [bad]
    )
    good = uncertain(db, poller)
    first, second = due(db, poller.store)
    assert isinstance(first, UnreadableCheck)
    assert (first.job_id, first.column) == (bad, "payload")
    assert isinstance(second, Check)
    assert second.job.id == good


def test_an_answer_that_is_given_again_is_told_what_became_of_the_first(db: Database) -> None:
    """A reply was lost, or a poller thawed after a minute and says it once more: nothing happens twice."""
    poller = Poller(db)
    job = uncertain(db, poller)
    check = one(db, poller.store)
    first = poller.store.record_check(job, 1, check.number, NOT_APPLIED, "no such batch")
    again = poller.store.record_check(job, 1, check.number, NOT_APPLIED, "no such batch")
    other = poller.store.record_check(job, 1, check.number, APPLIED, "changed its mind")
    assert [first.answer, again.answer, other.answer] == [
        RecordAnswer.RECORDED,
        RecordAnswer.ALREADY_DONE,
        RecordAnswer.ALREADY_DONE,
    ]
    assert [record.state for record in (first, again, other)] == ["pending"] * 3
    assert checks_of(db, job) == [(1, 1, "not_applied", "no such batch")]


def test_a_second_unknown_outcome_of_a_round_is_a_question_of_its_own(db: Database) -> None:
    """The answer to the first stays, and all its checks are there again."""
    poller = Poller(db)
    job = uncertain(db, poller, retry_base=1, retry_cap=1)
    poller.store.record_check(job, 1, one(db, poller.store).number, NOT_APPLIED, "no such batch")
    db.move("2s")
    poller.fail(poller.one(), Outcome.UNCERTAIN, "lost again")
    for number in (2, 3, 4):
        db.move("1h")
        check = one(db, poller.store)
        assert check.number == number
        poller.store.record_check(job, 1, number, UNKNOWN, "says nothing")
    assert [answer for *_, answer, _ in checks_of(db, job)] == ["not_applied", "unknown", "unknown", "unknown"]
    assert db.job(job)["next_check_at"] is None


@pytest.mark.parametrize("asked_again", [False, True])
def test_a_frozen_pollers_not_applied_about_an_earlier_send_opens_no_retry(db: Database, asked_again: bool) -> None:
    """It was asked before the second attempt sent: that nothing was there then says nothing about now."""
    poller = Poller(db)
    job = uncertain(db, poller, retry_base=1, retry_cap=1)
    frozen = one(db, poller.store)
    if asked_again:
        db.move("46s")
        poller.store.record_check(job, 1, one(db, poller.store).number, NOT_APPLIED, "no such batch")
    else:
        Operator(db).reconcile(job, "not_applied")
    db.move("2s")
    poller.fail(poller.one(), Outcome.UNCERTAIN, "lost again")
    if asked_again:
        db.move("2m")
        one(db, poller.store)
    late = poller.store.record_check(job, 1, frozen.number, NOT_APPLIED, "no such batch")
    assert (late.answer, late.state) == (RecordAnswer.STALE, "uncertain")
    truth = poller.store.record_check(job, 1, frozen.number, APPLIED, "")
    assert truth.answer == RecordAnswer.ALREADY_DONE


def test_a_replay_asks_under_new_numbers_so_that_no_earlier_answer_is_overwritten(db: Database) -> None:
    poller, ada = Poller(db), Operator(db)
    job = uncertain(db, poller)
    poller.store.record_check(job, 1, one(db, poller.store).number, UNKNOWN, "busy")
    ada.cancel(job, "looked at the receiver")
    ada.replay(job)
    check = one(db, poller.store)
    poller.store.record_check(job, 1, check.number, NOT_APPLIED, "no such batch")
    assert checks_of(db, job) == [(1, 1, "unknown", "busy"), (1, 2, "not_applied", "no such batch")]
    assert (db.job(job)["state"], db.job(job)["round"]) == ("pending", 2)


ASKED = """
    import asyncio, os, signal, sys, time
    from pathlib import Path
    from stopline import Uncertain

    def run(job):
        with open(job.payload["sent"], "a") as sent:
            print(job.effect_key, file=sent)
        raise Uncertain("sent, and the answer was lost")

    def reconcile(job):
        with open(job.payload["asked"], "a") as asked:
            print(job.effect_key, file=asked)
        return globals()[Path(job.payload["answers"]).read_text()](job)

    def applied(job):
        return "applied"

    def not_applied(job):
        return "not_applied"

    def unknown(job):
        return "unknown"

    def sigkill(job):
        os.kill(os.getpid(), signal.SIGKILL)

    def hang(job):
        Path(job.payload["asked"]).with_name("hangs").touch()
        while True:
            time.sleep(60)

    def until_released(job):
        Path(job.payload["asked"]).with_name("waits").touch()
        while not Path(job.payload["asked"]).with_name("released").exists():
            time.sleep(0.005)
        return "applied"
"""


class Receiver:
    """A receiver as files: what was sent to it, who asked it, and the way in which it answers next."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.payload = {name: str(folder / name) for name in ("sent", "asked", "answers")}
        self.answers("unknown")

    def answers(self, way: str) -> None:
        (self.folder / "answers").write_text(way)

    def _lines(self, name: str) -> list[str]:
        file = self.folder / name
        return file.read_text().split() if file.exists() else []

    @property
    def sent(self) -> list[str]:
        """The effect keys under which something was sent."""
        return self._lines("sent")

    @property
    def asked(self) -> list[str]:
        """The effect keys that were asked for."""
        return self._lines("asked")


@pytest.fixture
def poller(db: Database, tmp_path: Path) -> Iterator[RealPoller]:
    with RealPoller(db, tmp_path) as poller:
        yield poller


@pytest.fixture
def receiver(tmp_path: Path) -> Receiver:
    return Receiver(tmp_path)


def lost(db: Database, poller: RealPoller, receiver: Receiver, **policy: object) -> int:
    """A job that was sent once and whose answer was lost; the receiver has settled since."""
    defaults: dict[str, object] = {"idempotent": False, "settle": 120, "max_checks": 3}
    poller.kind("export", ASKED, **(defaults | policy))
    job = db.enqueue("export", receiver.payload, key="batch:1").job_id or 0
    first = poller.poll()["kinds"]["export"]
    assert (first["outcomes"], first.get("checks")) == ({"uncertain": 1}, None)
    db.move("2m")
    return job


def polled(poller: RealPoller) -> dict[str, Any]:
    kind: dict[str, Any] = poller.poll()["kinds"]["export"]
    return kind


def test_applied_ends_the_job_without_a_second_run(db: Database, poller: RealPoller, receiver: Receiver) -> None:
    job = lost(db, poller, receiver)
    receiver.answers("applied")
    assert polled(poller)["checks"] == {"applied": 1}
    db.move("1d")
    assert polled(poller)["claimed"] == 0
    row = db.job(job)
    assert (row["state"], row["stop_reason"], row["attempts"]) == ("succeeded", "completed", 1)
    assert (len(receiver.sent), receiver.asked) == (1, receiver.sent)
    assert checks_of(db, job) == [(1, 1, "applied", "reconcile(job) returned applied")]
    (line,) = poller.events("check")
    assert (line["job"], line["given"], line["answer"], line["state"]) == (job, "applied", "recorded", "succeeded")


def test_nobody_asks_before_the_receiver_has_settled(db: Database, poller: RealPoller, receiver: Receiver) -> None:
    lost(db, poller, receiver)
    db.move("-1m")
    assert "checks" not in polled(poller)
    assert receiver.asked == []


def test_not_applied_opens_the_retry_under_the_same_effect_key(
    db: Database, poller: RealPoller, receiver: Receiver
) -> None:
    job = lost(db, poller, receiver)
    receiver.answers("not_applied")
    assert polled(poller)["checks"] == {"not_applied": 1}
    assert (db.job(job)["state"], db.job(job)["due_rule"]) == ("pending", "check")
    db.move("1m")
    assert polled(poller)["outcomes"] == {"uncertain": 1}
    assert len(receiver.sent) == 2
    assert len({*receiver.sent, *receiver.asked}) == 1


def test_unknown_is_asked_until_the_bound_and_then_waits_for_a_person(
    db: Database, poller: RealPoller, receiver: Receiver
) -> None:
    job = lost(db, poller, receiver, review_within=86_400)
    for _ in range(3):
        assert polled(poller)["checks"] == {"unknown": 1}
        db.move("30m")
    db.move("2d")
    assert "checks" not in polled(poller)
    row = db.job(job)
    assert (row["state"], row["checks"], row["next_check_at"]) == ("uncertain", 3, None)
    assert row["review_by"] is not None
    assert len(receiver.sent) == 1
    assert [answer for *_, answer, _ in checks_of(db, job)] == ["unknown"] * 3
    assert events(db, job) == ["checks_exhausted"]


WAYS = """
    import asyncio, ctypes, os, signal, sys, time

    from stopline import Uncertain

    def run(job):
        raise Uncertain("sent, and the answer was lost")

    def reconcile(job):
        return globals()[job.payload](job)

    def fine(job):
        return "applied"

    def hang(job):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)

    def sigkill(job):
        os.kill(os.getpid(), signal.SIGKILL)

    def segfault(job):
        ctypes.string_at(0)

    def exit_0(job):
        os._exit(0)

    def sys_exit(job):
        sys.exit(0)

    def raises(job):
        raise ValueError("the connector says postgresql://app:hunter22@db/x")

    def nul(job):
        raise Exception("bad \\x00 byte \\ud83d")

    def nothing(job):
        pass

    def true(job):
        return True

    def shouted(job):
        return "APPLIED"

    def listed(job):
        return ["applied"]

    def unstarted(job):
        async def answer():
            return "applied"
        return answer()

    def effect(job):
        job.effect()
        return "applied"

    def steps(job):
        next(job.steps())
        return "applied"

    def checkpoint(job):
        job.save_checkpoint({"seen": True})
        return "applied"

    def garbage(job):
        for name in os.listdir("/proc/self/fd"):
            try:
                if int(name) > 2 and os.readlink(f"/proc/self/fd/{name}").startswith("socket:"):
                    os.write(int(name), b"no message at all")
            except OSError:
                pass
        return "applied"

    def costs(job):
        job.cost("0.50", calls=2)
        print("asked the connector")
        return "not_applied"

    def attributes(job):
        seen = (job.kind, job.key, job.attempt, job.attempts_left, job.checkpoint, job.deadline_at)
        assert seen == ("way", "attributes", 1, 4, None, None), seen
        assert job.effect_key.endswith(f"-{job.id}") and 0 < job.seconds_left() <= 1 and job.timeout_for_wire() < 1
        return "applied"
"""

UNANSWERED = [
    ("hang", "the check was killed at its timeout, after 1."),
    ("sigkill", "killed by SIGKILL (signal 9)"),
    ("segfault", "Fatal Python error: Segmentation fault"),
    ("exit_0", "exited with status 0 without a result"),
    ("sys_exit", "SystemExit"),
    ("raises", "ValueError: the connector says postgresql://"),
    ("nul", "bad \\x00 byte \\ud83d"),
    ("nothing", "reconcile(job) returned None, which is none of applied, not_applied, unknown"),
    ("true", "reconcile(job) returned True"),
    ("shouted", "reconcile(job) returned 'APPLIED'"),
    ("listed", "reconcile(job) returned ['applied']"),
    ("unstarted", "reconcile(job) returned a coroutine, which has not run"),
    ("effect", "reconcile(job) only asks the receiver and must change nothing: job.effect() belongs in run(job)"),
    ("steps", "job.steps() belongs in run(job)"),
    ("checkpoint", "job.save_checkpoint() belongs in run(job)"),
    ("garbage", "not a message"),
]
ANSWERED = [("fine", "succeeded"), ("costs", "pending"), ("attributes", "succeeded")]


class Ways:
    """What became of one question for each way to answer, all put by one invocation."""

    def __init__(self, db: Database, poller: RealPoller) -> None:
        self.db = db
        self.poller = poller
        ways = [way for way, _ in [*UNANSWERED, *ANSWERED]]
        self.ids = {way: db.enqueue("way", way, key=way).job_id or 0 for way in ways}
        assert poller.poll()["kinds"]["way"]["outcomes"] == {"uncertain": len(ways)}
        db.move("2m")
        self.result = poller.poll()

    def check(self, way: str) -> tuple[int, int, str, str]:
        (check,) = checks_of(self.db, self.ids[way])
        return check


@pytest.fixture(scope="module")
def ways(server: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ways]:
    with fresh_database(server) as db, RealPoller(db, tmp_path_factory.mktemp("ways"), 60) as poller:
        poller.kind("way", WAYS, idempotent=False, timeout=1, margin=9, children=3, memory_mb=1536)
        yield Ways(db, poller)


@pytest.mark.parametrize(("way", "reason"), UNANSWERED)
def test_a_hook_that_does_not_answer_with_one_of_the_words_leaves_it_unknown_with_the_reason(
    ways: Ways, way: str, reason: str
) -> None:
    """A hang, a crash, an exit, an exception or another value is no evidence of anything."""
    *_, answer, detail = ways.check(way)
    assert answer == "unknown"
    assert reason in detail
    assert "hunter22" not in detail
    row = ways.db.job(ways.ids[way])
    assert (row["state"], row["attempts"], row["effect_started_at"], row["checkpoint"]) == ("uncertain", 1, None, None)
    assert row["next_check_at"] > ways.db.now()


@pytest.mark.parametrize(("way", "state"), ANSWERED)
def test_neighbours_of_such_a_hook_get_their_answer_in_the_same_invocation(ways: Ways, way: str, state: str) -> None:
    assert ways.db.job(ways.ids[way])["state"] == state


def test_the_failure_of_a_check_fails_nothing(ways: Ways) -> None:
    kind = ways.result["kinds"]["way"]
    assert kind["checks"] == {"unknown": len(UNANSWERED), "applied": 2, "not_applied": 1}
    assert (kind["status"], kind["outcomes"], ways.result["stopped"]) == ("empty", {}, "empty")


def test_a_checks_cost_is_noted_and_booked_nowhere_and_its_output_is_in_the_log(ways: Ways) -> None:
    job = ways.ids["costs"]
    assert float(ways.db.job(job)["cost_usd"]) == 0
    (note,) = [line for line in ways.poller.events("job_note") if line["job"] == job]
    assert "a cost of $0.500000 and 2 calls in all: noted here, booked nowhere" in note["text"]
    (said,) = [line for line in ways.poller.events("output") if line["job"] == job]
    assert (said["text"], said["check"], said["stream"]) == ("asked the connector", 1, "stdout")


@pytest.mark.parametrize("isolation", ["process", "inline"])
def test_a_poller_that_dies_in_a_check_has_counted_it_and_the_next_one_asks_again_once_its_time_is_over(
    db: Database, poller: RealPoller, receiver: Receiver, isolation: str
) -> None:
    """RE-07 for questions: nothing stays locked, and a check that kills its poller every time is bounded."""
    job = lost(db, poller, receiver, isolation=isolation, idempotent=isolation == "inline")
    receiver.answers("hang")
    dying = poller.start()
    with in_background(lambda: dying.invoke({})) as invocation:
        until(lambda: (receiver.folder / "hangs").exists(), "the receiver is asked")
        os.kill(dying.pid or 0, signal.SIGKILL)
        with pytest.raises(FunctionFailed):
            invocation.result(10)
    assert checks_of(db, job) == [(1, 1, "unknown", "asked, and the process ended without an answer")]
    assert "checks" not in polled(poller)
    db.move("10s")
    receiver.answers("applied")
    assert polled(poller)["checks"] == {"applied": 1}
    assert [number for _, number, *_ in checks_of(db, job)] == [1, 2]
    assert (db.job(job)["state"], len(receiver.sent)) == ("succeeded", 1)


def test_an_answer_outlives_the_connection_on_which_the_question_was_handed_out(
    db: Database, poller: RealPoller, receiver: Receiver
) -> None:
    """FI-10 for questions: what the receiver said is recorded on the next connection."""
    job = lost(db, poller, receiver)
    receiver.answers("until_released")
    with in_background(poller.poll) as invocation:
        until(lambda: (receiver.folder / "waits").exists(), "the receiver is asked")
        db.rows(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where usename = 'stopline_worker' and datname = current_database()"
        )
        (receiver.folder / "released").touch()
        assert invocation.result(15)["kinds"]["export"]["checks"] == {"applied": 1}
    assert db.job(job)["state"] == "succeeded"


@pytest.mark.parametrize("why", ["paused", "budget", "full"])
def test_a_kind_that_may_not_run_now_is_still_asked_for(
    db: Database, poller: RealPoller, receiver: Receiver, why: str
) -> None:
    """A question spends no money and does no work."""
    job = lost(db, poller, receiver, per_attempt_usd="0.40", daily_budget_usd="0.50", concurrency=1)
    if why == "paused":
        Operator(db).pause("export")
    elif why == "full":
        db.admin.execute("delete from stopline.spend")
        db.enqueue("export", receiver.payload)
        assert Poller(db).claim("export").jobs
    receiver.answers("applied")
    told = polled(poller)
    assert (told["status"], told["checks"]) == (why, {"applied": 1})
    assert db.job(job)["state"] == "succeeded"


def test_a_foreign_poller_asks_nobody(db: Database, poller: RealPoller, receiver: Receiver) -> None:
    """A restored copy's questions are not its to put."""
    lost(db, poller, receiver)
    stranger = poller.start(STOPLINE_INSTALLATION="elsewhere")
    assert "checks" not in stranger.invoke({})["kinds"]["export"]
    assert receiver.asked == []


def test_what_keeps_a_poller_from_asking_keeps_no_job_from_running(
    db: Database, poller: RealPoller, receiver: Receiver
) -> None:
    """It is said once the work is done: a kind whose questions stopped must not look healthy."""
    lost(db, poller, receiver)
    work = db.enqueue("export", receiver.payload).job_id or 0
    db.admin.execute("revoke execute on function stopline.due_checks from stopline_worker")
    with pytest.raises(FunctionFailed, match="permission denied for function due_checks"):
        poller.poll()
    assert db.job(work)["attempts"] == 1
    assert receiver.asked == []


def test_a_kind_without_the_hook_costs_no_round_trip_and_one_with_it_costs_one(
    db: Database, poller: RealPoller, receiver: Receiver
) -> None:
    db.admin.execute(f"alter database \"{db.name}\" set track_functions = 'all'")
    poller.kind("plain", "def run(job): pass")
    poller.kind("export", ASKED)
    for kind, calls in (("plain", None), ("export", 3)):
        poller.kinds = [kind]
        function = poller.start()
        for _ in range(3):
            assert function.invoke({})["kinds"][kind]["status"] == "empty"
        function.stop()
        until(lambda: called(db, "tick") > 0, "the statistics are there")
        assert called(db, "due_checks") == (calls or 0)
        db.admin.execute("select pg_stat_reset()")


def called(db: Database, function: str) -> int:
    db.admin.execute("select pg_stat_clear_snapshot()")
    rows = db.rows("select calls from pg_stat_user_functions where schemaname = 'stopline' and funcname = %s", function)
    return rows[0]["calls"] if rows else 0


def test_questions_that_take_all_the_time_keep_no_work_waiting_for_longer_than_one_invocation(
    db: Database, poller: RealPoller, receiver: Receiver
) -> None:
    """A receiver that hangs at every question must not stop the kind: the next invocation goes to work first."""
    lost(db, poller, receiver, timeout=5, margin=1, settle=0)
    db.enqueue("export", receiver.payload)
    receiver.answers("hang")
    short = poller.start(timeout_s=10.4)
    first, second = (short.invoke({})["kinds"]["export"] for _ in range(2))
    assert (first["checks"], first["claimed"]) == ({"unknown": 1}, 0)
    assert ("checks" in second, second["claimed"]) == (False, 1)


@pytest.mark.parametrize(
    ("way", "state", "rounds", "told"),
    [
        ("applied", "succeeded", 1, ["reconciled"]),
        ("not_applied", "pending", 2, ["replayed"]),
        ("unknown", "abandoned", 1, ["replay_unanswered"]),
    ],
)
def test_a_replay_asks_the_receiver_before_anything_is_sent(
    db: Database, poller: RealPoller, receiver: Receiver, way: str, state: str, rounds: int, told: list[str]
) -> None:
    job = lost(db, poller, receiver, max_attempts=1)
    receiver.answers("not_applied")
    polled(poller)
    assert db.job(job)["stop_reason"] == "attempts_exhausted"
    receiver.answers(way)
    before = events(db, job)
    assert Operator(db).replay(job)[0] == "requested"
    for _ in range(3):
        polled(poller)
        db.move("30m")
    row = db.job(job)
    assert events(db, job)[len(before) :][:2] == ["replay_requested", *told]
    assert (row["round"], row["replay_by"]) == (rounds, None)
    if way == "not_applied":
        assert len(receiver.sent) == 2  # the new round began within the polls above
    else:
        assert (row["state"], len(receiver.sent)) == (state, 1)


def test_the_effect_key_is_one_across_attempts_rounds_and_replays(
    db: Database, poller: RealPoller, receiver: Receiver
) -> None:
    job = lost(db, poller, receiver, max_attempts=2)
    receiver.answers("not_applied")
    for _ in range(2):
        for _ in range(6):
            polled(poller)
            db.move("30m")
        assert db.job(job)["stop_reason"] == "attempts_exhausted"
        Operator(db).replay(job)
    rows = db.rows("select round, attempt from stopline.attempt where job_id = %s order by fence", job)
    assert [(row["round"], row["attempt"]) for row in rows] == [(1, 1), (1, 2), (2, 1), (2, 2)]
    assert len(receiver.sent) == 4
    assert len(receiver.asked) > 4
    assert len({*receiver.sent, *receiver.asked}) == 1
