"""What people look at: the worst case with its working, the reasons of a batch, and a job's outlook and timeline."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline.errors import InvalidInput
from stopline.states import Outcome
from stopline.store.operate import OperateStore
from stopline.store.reads import ReadStore
from stopline.store.upkeep import UpkeepStore
from stopline_cli.local.postgres import EmbeddedPostgres
from tests.support.command import Command, local_database, local_postgres
from tests.support.database import Database
from tests.support.plans import pages_read
from tests.support.poller import Poller
from tests.support.rows import insert_job, insert_many


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


def exposure(db: Database, kind: str | None = None) -> dict[str, Any]:
    return ReadStore(db.session("stopline_operator")).exposure(kind)


def test_the_worst_case_is_the_open_rows_attempts_left_times_their_price(stopline: Command, db: Database) -> None:
    db.policy(per_attempt_usd="0.20", daily_budget_usd="1.50", max_attempts=5)
    for _ in range(3):
        db.enqueue()
    poller = Poller(db)
    poller.fail(poller.one(), cost="0.15")
    poller.one()
    done = stopline("exposure")
    assert done.status == 0, done.err
    assert "work: 3 open rows: 1 x 5 + 2 x 4 = 13 attempts left x $0.20 = at most $2.60" in done.out
    budget = "work: $0.35 spent or reserved today of $1.50 (daily_budget_usd); $1.15 left, so at most $1.15 more today"
    assert budget in done.out
    assert "In all: 3 open rows with 13 attempts left = at most $2.60, of which at most $1.15 today; $0.35" in done.out

    (kind,) = stopline("exposure", "--json", "--kind", "work").answer["kinds"]
    assert kind["open"] == {"pending": 2, "claimed": 1}
    assert (kind["calls_left"], kind["worst_case_usd"], kind["worst_case_today_usd"]) == (13, 2.6, 1.15)
    assert "= at most $2.60" in kind["working"]


def test_a_job_budget_ends_rows_sooner_and_a_step_has_its_price(db: Database) -> None:
    db.policy(per_attempt_usd="0.20", per_job_usd="0.50", max_attempts=5)
    db.policy("agent", per_attempt_usd="0.10", per_step_usd="0.01", max_steps=20, max_attempts=2)
    insert_job(db, cost_usd="0.40", attempts=2)
    insert_job(db, attempts=4, cost_usd="0.10")
    insert_job(db, kind="agent", steps=5, max_attempts=2)
    agent, work = exposure(db)["kinds"]
    assert (work["uncapped_usd"], work["worst_case_usd"], work["rows_ended_by_per_job"]) == (0.8, 0.3, 1)
    assert (agent["attempts_left"], agent["steps_left"], agent["worst_case_usd"]) == (2, 15, 0.35)


def test_without_a_price_or_a_budget_the_calls_are_the_bound(stopline: Command, db: Database) -> None:
    db.policy(calls_per_attempt=2)
    db.enqueue()
    out = stopline("exposure").out
    assert "work: 1 open row: 1 x 5 = 5 attempts left x 2 calls = at most 10 calls; no price is set" in out
    assert "no daily budget is set" in out


def test_the_figure_is_the_one_that_the_monitor_reports(db: Database) -> None:
    """Rows of every open state, past a lowered cap, with and without money and steps left."""
    db.policy(per_attempt_usd="0.20", per_step_usd="0.01", per_job_usd="0.70", max_steps=30, max_attempts=4)
    db.policy("plain", per_attempt_usd="0.05")
    for number, name in enumerate(("pending", "claimed", "uncertain", "succeeded", "abandoned")):
        for attempts in range(1, 4):
            insert_job(db, name, attempts=attempts, steps=number * 9, cost_usd=str(attempts * 0.2))
            insert_job(db, name, kind="plain", attempts=attempts)
    found = exposure(db)
    health = UpkeepStore(db.session("stopline_monitor")).health()
    assert found["totals"]["worst_case_usd"] > 0
    assert found["totals"]["worst_case_usd"] == health.totals["WorstCaseSpend"]
    assert {kind["kind"]: kind["worst_case_usd"] for kind in found["kinds"]} == {
        kind["kind"]: kind["worst_case_spend"] for kind in health.kinds
    }


def test_a_retired_kind_is_told_while_it_has_open_rows_and_an_unknown_one_is_named(
    stopline: Command, db: Database
) -> None:
    db.policy()
    db.policy("gone")
    db.policy("empty")
    db.enqueue("gone")
    db.retire("gone")
    db.retire("empty")
    assert [(kind["kind"], kind["retired"]) for kind in exposure(db)["kinds"]] == [("gone", True), ("work", False)]
    assert [kind["kind"] for kind in exposure(db, "empty")["kinds"]] == ["empty"]
    with pytest.raises(InvalidInput, match=r"^kind: 'worc' is not known\. Known kinds: empty, gone, work\.$"):
        exposure(db, "worc")
    for command in ("exposure", "reasons", "jobs"):
        done = stopline(command, "--kind", "worc")
        assert (done.status, done.out) == (1, "")
        assert "'worc' is not known" in done.err
        assert "empty, gone, work" in done.err


def test_an_empty_database_is_exposed_to_nothing(stopline: Command, db: Database) -> None:
    assert exposure(db)["totals"]["worst_case_usd"] == 0
    assert "In all: 0 open rows with 0 attempts left = at most $0.00" in stopline("exposure").out


def test_terminal_rows_cost_the_reading_nothing(db: Database) -> None:
    """CL-10: what has ended is not read."""
    db.policy(per_attempt_usd="0.20")
    db.enqueue()
    insert_many(db, 3000)
    db.admin.execute("vacuum analyze stopline.job")
    before = pages_read(db.admin, "select stopline.exposure()")
    insert_many(db, 12000)
    db.admin.execute("vacuum analyze stopline.job")
    assert pages_read(db.admin, "select stopline.exposure()") <= before + 20


def test_a_batch_of_stopped_jobs_is_told_as_one_thing_upstream_or_as_several(stopline: Command, db: Database) -> None:
    db.policy(max_attempts=1)
    db.policy("other", max_attempts=1)
    poller = Poller(db)
    assert stopline("reasons").out.startswith("No job is abandoned.\n")
    for number in range(8):
        kind = "work" if number % 2 else "other"
        db.enqueue(kind)
        poller.fail(poller.one(kind), error=f"invoice {number} refused: [bold]503[/bold]")
    db.enqueue()
    poller.fail(poller.one(), Outcome.PERMANENT, "no such account")
    done = stopline("reasons")
    line = "8 of 9 jobs of 2 kinds share one fingerprint: one thing upstream of these kinds. The other 1 job: 1 fault."
    assert done.out.splitlines()[0] == line
    assert "[bold]503[/bold]" in done.out
    answer = stopline("reasons", "--json", "--kind", "other").answer
    assert (answer["verdict"]["jobs"], answer["verdict"]["largest_kinds"]) == (4, ["other"])
    assert [group["jobs"] for group in answer["groups"]] == [4]
    db.move("2 hours")
    assert stopline("reasons", "--since", "1h", "--json").answer["groups"] == []
    assert len(stopline("reasons", "--since", "3h", "--json").answer["groups"]) == 3
    assert stopline("reasons", "--since", "yesterday").err.startswith("error: --since: 'yesterday' is neither")


def test_jobs_says_of_each_when_it_runs_what_set_that_and_who_decides(stopline: Command, db: Database) -> None:
    db.policy()
    db.policy("export", idempotent=False, owner="billing", reconciles=True)
    poller = Poller(db)
    db.enqueue(key="[b]k[/b]" + "x" * 500)
    db.enqueue("export")
    poller.fail(poller.one("export"), Outcome.UNCERTAIN)
    db.enqueue("export")
    poller.fail(poller.one("export"), Outcome.PERMANENT)
    rows = {job["kind"] + ":" + job["state"]: job["outlook"] for job in stopline("jobs", "--json").answer}
    assert rows["work:pending"]["set_by"] == "enqueue"
    assert rows["work:pending"]["effect"]["may_exist"] == "no"
    assert (rows["export:uncertain"]["decides"], rows["export:uncertain"]["set_by"]) == ("the receiver", "settle")
    assert rows["export:uncertain"]["effect"]["may_exist"] == "maybe"
    assert (rows["export:abandoned"]["decides"], rows["export:abandoned"]["next_at"]) == ("billing, the owner", None)

    OperateStore(db.session("stopline_operator")).pause_kind("work", "ada", "the model\nis wrong")
    out = stopline("jobs").out
    assert "ada, who paused the kind" in out
    assert "ada paused kind work, until somebody resumes it, because the model\\nis wrong." in out


def test_show_merges_attempts_checks_and_events_with_what_held_the_kind_up(stopline: Command, db: Database) -> None:
    db.policy(idempotent=False, reconciles=True, settle=60)
    db.policy("other")
    db.freeze()
    job = db.enqueue().job_id
    assert job is not None
    poller = Poller(db)
    store = OperateStore(db.session("stopline_operator"))
    claimed = poller.one()
    db.move(10)
    poller.fail(claimed, Outcome.UNCERTAIN, "sent, no answer")
    db.move(60)
    store.pause_kind("work", "ada", "a look at it")
    store.pause_kind("other", "ada", "not about this job")
    (check,) = db.connect().execute(
        "select job_id, round, number from stopline.due_checks('work', 'w1', 1, 900, %s)", [db.identity]
    ).fetchall()  # fmt: skip
    db.move(5)
    db.connect().execute("select stopline.record_check(%s, %s, %s, 'not_applied', 'unknown there')", check)
    shown = stopline("show", job, "--json").answer
    assert [entry["what"] for entry in shown["timeline"]] == [
        "enqueued",
        "attempt 1 of round 1 started",
        "attempt 1 of round 1 ended: uncertain: Busy: sent, no answer",
        "check 1 of round 1: the receiver was asked",
        "the kind was paused · a look at it",
        "check 1 of round 1 answered: not applied: unknown there",
        "reconciled as not applied · unknown there",
    ]
    assert (shown["job"]["due_rule"], shown["outlook"]["decides"]) == ("check", "ada, who paused the kind")
    text = stopline("show", job).out
    assert "Its effect was found not to exist; from there backoff set the due time" in text
    assert "Effect      does not exist: no attempt sent anything, or what it sent was found not to exist" in text
    assert "May become  claimed, when it is due; cancelled, by a person" in text


def test_a_late_success_on_a_stopped_job_is_told_as_an_effect_that_exists(stopline: Command, db: Database) -> None:
    """FI-04: it changes no state, and whoever looks before a replay must see it."""
    db.policy(max_attempts=1)
    job = db.enqueue().job_id
    poller = Poller(db)
    claimed = poller.one()
    poller.fail(claimed)
    assert poller.succeed(claimed).answer == "late"
    shown = stopline("show", job, "--json").answer
    assert shown["outlook"]["effect"]["may_exist"] == "yes"
    assert "attempt 1 of round 1 answered late: succeeded" in [entry["what"] for entry in shown["timeline"]]


def test_a_kind_that_is_full_or_has_spent_its_day_says_so(stopline: Command, db: Database) -> None:
    db.policy(concurrency=1, per_attempt_usd="1", daily_budget_usd="1")
    poller = Poller(db)
    db.enqueue()
    job = db.enqueue().job_id
    poller.one()
    text = stopline("show", job).out
    assert "The daily budget of kind work ($1.00) pays no further attempt until" in text
    assert "Kind work runs 1 job already, as many as it may (concurrency)." in text
    assert "set by daily budget" in text


def test_the_whole_text_of_the_last_error_is_shown_once_and_obeyed_by_no_terminal(
    stopline: Command, db: Database
) -> None:
    db.policy()
    job = db.enqueue().job_id
    poller = Poller(db)
    poller.fail(poller.one(), Outcome.PERMANENT, "first line\nat x.py:1 in run\nat [red]y[/red].py:2\x1b[31m")
    out = stopline("show", job).out
    assert out.endswith("Last error in full\n  Busy: first line\n  at x.py:1 in run\n  at [red]y[/red].py:2\\x1b[31m\n")
