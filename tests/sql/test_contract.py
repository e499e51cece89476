"""Code of one release runs on the schema of the next. `contract.json` holds what it relies on.

After an addition write the file anew with `STOPLINE_WRITE_CONTRACT=1 make test-sql ARGS="-k contract"` and review the
difference: lines may be added, none may go (docs/upgrade.md).
"""

import copy
import json
import os
from pathlib import Path
from typing import Any, LiteralString

import pytest

from tests.support.contract import broken, functions, merged_all, relations
from tests.support.database import Database
from tests.support.poller import Poller
from tests.support.rows import insert_job

FILE = Path(__file__).with_name("contract.json")

EVERY_POLICY = {
    "max_elapsed": 86400,
    "deadline": 864000,
    "concurrency": 50,
    "per_attempt_usd": "0.1",
    "per_job_usd": "5",
    "daily_budget_usd": "100",
    "max_steps": 5,
    "per_step_usd": "0.01",
    "schedule": "rate(1 day)",
    "timezone": "UTC",
}
EVERY_STATE: LiteralString = """
update stopline.kind
   set paused_at = synced_at, paused_until = synced_at, paused_by = 'ada', paused_why = 'why',
       probe_until = synced_at, probe_job = 1, probe_fence = 1, breaker_reset_at = synced_at, retired_at = synced_at
 where name = 'full'
"""
EVERY_COLUMN: tuple[LiteralString, ...] = (
    """
    update stopline.job
       set state = 'succeeded', stop_reason = 'completed', finished_at = created_at, holds_key = false,
           effect_started_at = created_at, cancel_requested_at = created_at, acknowledged_at = created_at,
           next_check_at = created_at, review_by = created_at, deadline_at = created_at, give_up_at = created_at,
           claimed_by = 'w', claimed_at = created_at, lease_until = created_at, replay_by = 'ada', replay_why = 'mended'
     where id = %s
    """,
    """
    update stopline.attempt
       set late_outcome = 'succeeded', late_error = 'late', late_at = started_at, next_due_at = started_at
     where job_id = %s
    """,
    """
    insert into stopline.reconcile_check (job_id, number, round, asked_at, worker, answer, detail, answered_at)
    values (%s, 1, 1, stopline.clock(), 'w', 'unknown', 'the receiver is silent', stopline.clock())
    """,
    """
    insert into stopline.event (job_id, at, kind, action, actor, reason, effects_checked, before, after)
    values (%s, stopline.clock(), 'full', 'acknowledged', 'ada', 'seen', 'asked', '{}', '{}')
    """,
)


def samples(db: Database) -> dict[str, list[Any]]:
    """Answers of the functions that return JSON, from jobs and kinds with every value and with none."""
    db.policy("work")
    db.policy("full", **EVERY_POLICY)
    rich = db.enqueue("full", {"n": 1}, key="a key").job_id or 0
    poller = Poller(db)
    poller.fail(poller.one("full"))
    ticks = [db.connect().execute("select stopline.tick(%s)", [kind]).fetchall()[0][0] for kind in ("work", "full")]
    db.admin.execute("create function stopline_source.work(integer, boolean) returns int language sql as 'select 1'")
    ticks.append(db.connect().execute("select stopline.tick('work')").fetchall()[0][0])
    insert_job(db)
    db.admin.execute(EVERY_STATE)
    for statement in EVERY_COLUMN:
        db.admin.execute(statement, [rich])
    operator = db.connect("stopline_operator")
    jobs = [row[0] for row in operator.execute("select stopline.list_jobs()").fetchall()]
    return {
        "tick": ticks,
        "health": [db.connect("stopline_monitor").execute("select stopline.health()").fetchall()[0][0]],
        "list_jobs": jobs,
        "list_kinds": [row[0] for row in operator.execute("select stopline.list_kinds()").fetchall()],
        "show_job": [operator.execute("select stopline.show_job(%s)", [job["id"]]).fetchall()[0][0] for job in jobs],
    }


@pytest.fixture
def now(db: Database) -> dict[str, Any]:
    """What the engine of this checkout offers."""
    offered = {"functions": functions(db), "relations": relations(db)}
    return {**offered, "json": {name: merged_all(answers) for name, answers in samples(db).items()}}


def text(contract: dict[str, Any]) -> str:
    return json.dumps(contract, indent=1, sort_keys=True) + "\n"


def test_nothing_that_deployed_code_relies_on_is_gone_or_changed(now: dict[str, Any]) -> None:
    """MI-02: on roll back the old version runs on the new schema."""
    missing = broken(json.loads(FILE.read_text()), now)
    assert missing == [], (
        "Deployed code relies on this. Keep it, beside what replaces it, until no release that uses it can be rolled "
        "back to (docs/upgrade.md)."
    )


def test_the_contract_holds_everything_that_the_engine_offers(now: dict[str, Any]) -> None:
    if os.environ.get("STOPLINE_WRITE_CONTRACT"):
        FILE.write_text(text(now))
    assert FILE.read_text() == text(now), (
        "What was added is not frozen yet: STOPLINE_WRITE_CONTRACT=1 make test-sql ARGS='-k contract', and review "
        "the difference: lines may be added, none may go (docs/upgrade.md)."
    )


def test_every_key_of_an_answer_has_a_type(now: dict[str, Any]) -> None:
    """A key that was null in every sample would be frozen as nothing."""
    untyped: list[str] = []

    def walk(where: str, shape: Any) -> None:
        if isinstance(shape, dict):
            for key, inner in shape.items():
                walk(f"{where}.{key}", inner)
        elif isinstance(shape, list):
            for inner in shape:
                walk(f"{where}[]", inner)
        elif shape == "null":
            untyped.append(where)

    walk("", now["json"])
    assert untyped == []


@pytest.mark.parametrize(
    ("path", "value", "told"),
    [
        (("functions", "claim"), None, "claim: is gone"),
        (("functions", "claim", "arguments", 5), "p_home text", "claim: arguments"),
        (("functions", "claim", "arguments", 3), "p_batch bigint", "claim: arguments"),
        (("functions", "fail", "defaults"), 0, "fail: needs 9 arguments; older calls give as few as 6"),
        (("functions", "claim", "returns", 0), "state text", "claim: result column status"),
        (("functions", "sweep", "returns", 1), "jobs bigint", "sweep: result column jobs"),
        (("functions", "tick", "returns"), "text", "tick: returns text, not jsonb"),
        (("functions", "sweep", "callers"), [], "sweep: stopline_sweeper may no longer call it"),
        (("relations", "support_job", 0), "job bigint", "support_job: column id"),
        (("relations", "schema_migration"), [], "schema_migration: column name"),
        (("json", "tick", "run", "timeout_s"), None, "tick.run.timeout_s: is gone"),
        (("json", "tick", "run", "timeout_s"), "string", "tick.run.timeout_s: was number, is string"),
        (("json", "tick", "status"), "null|string", "tick.status: was string, is null|string"),
        (("json", "health", "totals"), [], "health.totals: is no object any more"),
        (("json", "show_job", "attempts", 0, "outcome"), None, "show_job.attempts[].outcome: is gone"),
    ],
)
def test_a_change_that_breaks_older_code_is_told(path: tuple[Any, ...], value: Any, told: str) -> None:
    frozen = json.loads(FILE.read_text())
    changed = copy.deepcopy(frozen)
    place = changed
    for step in path[:-1]:
        place = place[step]
    if value is None:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    (line,) = [line for line in broken(frozen, changed) if line.startswith(told)]
    assert line


def test_additions_break_nothing() -> None:
    frozen = json.loads(FILE.read_text())
    grown = copy.deepcopy(frozen)
    claim = grown["functions"]["claim"]
    claim["arguments"].append("p_new integer")
    claim["defaults"] += 1
    claim["returns"].append("new text")
    claim["callers"].append("stopline_operator")
    grown["functions"]["new"] = claim
    grown["relations"]["support_job"].insert(3, "new text")
    grown["json"]["tick"]["run"]["new"] = "number"
    grown["json"]["show_job"]["job"]["key"] = "string"
    assert broken(frozen, grown) == []
