"""What a deploy of policies does to kinds and to the jobs that are there."""

import json
from typing import Any

import psycopg
import pytest

from stopline.errors import InvalidInput
from stopline.states import Outcome
from tests.support.database import Database
from tests.support.deploys import deploy, policies
from tests.support.policies import policy_row
from tests.support.poller import Poller
from tests.support.rows import insert_job


def sync(db: Database, *rows: dict[str, object]) -> list[tuple[Any, ...]]:
    """A deploy of exactly these kinds; what changed."""
    call = "select kind, change from stopline.sync_policy(%s::jsonb, 'me')"
    return db.connect("stopline_owner").execute(call, [json.dumps(rows)]).fetchall()


def events(db: Database) -> list[dict[str, Any]]:
    return db.rows("select kind, action, actor, before, after from stopline.event order by id")


def lower(db: Database, limit: int = 1000) -> int:
    row = db.connect("stopline_owner").execute("select stopline.lower_caps('work', %s)", [limit]).fetchone()
    assert row is not None
    return int(row[0])


def test_a_new_kind_is_added_with_one_event_that_holds_its_policy(db: Database) -> None:
    assert sync(db, policy_row("work", {})) == [("work", "added")]
    (event,) = events(db)
    assert (event["action"], event["actor"], event["before"]) == ("policy_added", "me", None)
    assert event["after"].keys() == policy_row("work", {}).keys()


def test_a_changed_kind_has_one_event_with_the_changed_keys_before_and_after(db: Database) -> None:
    sync(db, policy_row("work", {}))
    changed = policy_row("work", {"max_attempts": 3, "per_attempt_usd": "0.20", "retry_base": 60})
    assert sync(db, changed) == [("work", "changed: max_attempts, per_attempt_usd, retry_base")]
    event = events(db)[-1]
    assert event["action"] == "policy_changed"
    assert event["before"] == {"max_attempts": 5, "per_attempt_usd": None, "retry_base": "00:00:30"}
    assert event["after"] == {"max_attempts": 3, "per_attempt_usd": 0.2, "retry_base": "00:01:00"}


def test_the_same_policies_again_change_nothing_and_write_no_event(db: Database) -> None:
    row = policy_row("work", {"daily_budget_usd": "1.50", "max_elapsed": 86400})
    sync(db, row)
    before = (events(db), db.rows("select *, xmin::text from stopline.kind"))
    assert sync(db, row) == []
    assert (events(db), db.rows("select *, xmin::text from stopline.kind")) == before


def test_a_kind_without_a_folder_is_retired_and_one_that_returns_is_told(db: Database) -> None:
    work, other = policy_row("work", {}), policy_row("other", {})
    sync(db, work, other)
    assert sync(db, other) == [("work", "retired")]
    assert sync(db, other) == []
    assert db.rows("select name from stopline.kind where retired_at is not null") == [{"name": "work"}]
    assert sync(db, work, other) == [("work", "returned")]
    assert [event["action"] for event in events(db)][2:] == ["kind_retired", "kind_returned"]
    assert db.rows("select name from stopline.kind where retired_at is not null") == []


def test_a_retired_kind_stays_in_health_while_somebody_must_still_see_its_rows(db: Database) -> None:
    db.policy("other")
    db.policy("work")
    db.enqueue("work")
    db.retire("work")
    assert Poller(db).claim().status == "paused"

    def seen() -> list[str]:
        (answer,) = db.connect("stopline_monitor").execute("select stopline.health()").fetchone() or ({},)
        return [kind["kind"] for kind in answer["kinds"]]

    assert seen() == ["other", "work"]
    db.admin.execute(
        "update stopline.job set state = 'abandoned', stop_reason = 'permanent_failure', last_error = 'bad',"
        " finished_at = stopline.clock()"
    )
    assert seen() == ["other", "work"]
    db.admin.execute("update stopline.job set acknowledged_at = stopline.clock()")
    assert seen() == ["other"]


def test_an_unknown_or_retired_kind_is_refused_at_the_door_by_name(db: Database) -> None:
    """CL-11: nothing is enqueued that no poller would take."""
    db.policy("other")
    db.policy("work")
    with pytest.raises(InvalidInput, match=r"^kind: 'wrok' is not known\. Known kinds: other, work"):
        db.enqueue("wrok")
    db.retire("work")
    with pytest.raises(InvalidInput, match=r"^kind: work was retired at .* Deploy its folder again"):
        db.enqueue("work")
    assert db.rows("select id from stopline.job") == []


@pytest.mark.parametrize("key", ["max_tries", "retired_at", "paused_until"])
def test_a_policy_with_an_unknown_setting_or_a_kinds_own_state_is_refused_whole(db: Database, key: str) -> None:
    with pytest.raises(psycopg.Error, match=f"policy of kind work: this database knows no setting {key}") as caught:
        sync(db, policy_row("other", {}), {**policy_row("work", {}), key: None})
    assert caught.value.sqlstate == "SL001"
    assert db.rows("select name from stopline.kind") == []


def test_a_lowered_cap_reaches_open_jobs_and_abandons_the_waiting_ones_that_are_at_it(db: Database) -> None:
    """Each open row gets greatest(attempts, least(own cap, new cap)), in one update; with one event for each stop."""
    db.policy("work", max_attempts=10)
    fresh = insert_job(db, max_attempts=10)
    own = insert_job(db, max_attempts=2)
    below = insert_job(db, max_attempts=10, attempts=2)
    at = insert_job(db, max_attempts=10, attempts=3, last_error="HTTP 500", key="k", holds_key=True)
    beyond = insert_job(db, max_attempts=10, attempts=7)
    running = insert_job(db, "claimed", max_attempts=10, attempts=7)
    unknown = insert_job(db, "uncertain", max_attempts=10, attempts=7)
    done = insert_job(db, "succeeded", max_attempts=10, attempts=7)
    db.policy("work", max_attempts=3)

    rows = db.rows("select id, state, max_attempts, stop_reason, last_error from stopline.job order by id")
    found = {row["id"]: (row["state"], row["max_attempts"], row["stop_reason"]) for row in rows}
    assert found == {
        fresh: ("pending", 3, None),
        own: ("pending", 2, None),
        below: ("pending", 3, None),
        at: ("abandoned", 3, "attempts_exhausted"),
        beyond: ("abandoned", 7, "attempts_exhausted"),
        running: ("claimed", 7, None),
        unknown: ("uncertain", 7, None),
        done: ("succeeded", 10, "completed"),
    }
    errors = {row["id"]: row["last_error"] for row in rows}
    assert (errors[at], errors[beyond]) == ("HTTP 500", "the policy lowered max_attempts to 3 after 7 attempts")
    assert db.job(at)["holds_key"]
    stops = db.rows("select job_id, reason from stopline.event where action = 'stopped' order by job_id")
    assert stops == [{"job_id": job, "reason": "attempts_exhausted"} for job in (at, beyond)]


def test_a_running_job_whose_cap_was_lowered_ends_at_its_finish(db: Database) -> None:
    db.policy("work", max_attempts=5, retry_base=1, retry_cap=1)
    db.enqueue()
    poller = Poller(db)
    for _ in range(2):
        poller.fail(poller.one())
        db.move(2)
    job = poller.one()
    db.policy("work", max_attempts=2)
    finish = poller.fail(job, Outcome.TRANSIENT)
    assert (finish.state, finish.stop_reason) == ("abandoned", "attempts_exhausted")
    assert db.job(job.id)["attempts"] == 3


def test_a_cap_that_was_lowered_binds_claims_before_the_rows_are_brought_to_it(db: Database) -> None:
    db.policy("work", max_attempts=5)
    at = insert_job(db, attempts=2)
    sync(db, policy_row("work", {"max_attempts": 2}))
    assert Poller(db).claim().status == "empty"
    assert (lower(db), db.job(at)["state"]) == (1, "abandoned")


def test_raising_a_cap_leaves_open_jobs_as_they_are(db: Database) -> None:
    db.policy("work", max_attempts=3)
    old = insert_job(db, max_attempts=3, attempts=2)
    db.policy("work", max_attempts=9)
    assert db.job(old)["max_attempts"] == 3
    assert db.job(db.enqueue().job_id or 0)["max_attempts"] == 9


def test_caps_are_lowered_in_batches_each_row_once(db: Database) -> None:
    db.policy("work", max_attempts=5)
    for _ in range(5):
        insert_job(db)
    sync(db, policy_row("work", {"max_attempts": 3}))
    assert [lower(db, 2) for _ in range(4)] == [2, 2, 1, 0]


def test_the_migrator_brings_a_lowered_cap_to_every_open_job_and_says_how_many(db: Database) -> None:
    deploy(db, kinds=policies("work"))
    for attempts in (0, 2):
        insert_job(db, attempts=attempts)
    report = deploy(db, kinds=policies("work", more="[limits]\nmax_attempts = 2\n"))
    assert report.lines == ["policy of work changed: max_attempts", "cap of work lowered on 2 open jobs"]
    assert db.rows("select state, max_attempts from stopline.job order by id") == [
        {"state": "pending", "max_attempts": 2},
        {"state": "abandoned", "max_attempts": 2},
    ]
