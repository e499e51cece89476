"""`stopline show` says in words why a job is where it is, whether it will run again, when, and what rule says so."""

from typing import Any

import pytest

from stopline.states import DueRule, StopReason
from stopline_cli.explain import explain
from stopline_cli.rules import due_rule, stop_rule

NOW = "2026-03-01T12:00:00.000000Z"

KIND: dict[str, Any] = {
    "name": "close", "owner": "support", "idempotent": True, "effect": "whole_attempt", "run_every": 60,
    "retry_base": 30, "retry_cap": 900, "max_crashes": 2, "max_elapsed": 86400, "per_job_usd": 1.0, "max_steps": 20,
    "max_checks": 5, "max_reopens": 3, "reopen_window": 86400, "retired_at": None, "paused_at": None,
    "paused_until": None, "paused_by": None, "paused_why": None,
}  # fmt: skip

JOB: dict[str, Any] = {
    "id": 7, "kind": "close", "key": "conversation:7", "holds_key": True, "state": "pending", "attempts": 2,
    "max_attempts": 5, "crashes": 1, "round": 1, "cost_usd": 0.4, "steps": 0, "due_at": "2026-03-01T12:12:00Z",
    "due_rule": "backoff", "give_up_at": "2026-03-02T11:00:00Z", "deadline_at": None, "claimed_by": None,
    "claimed_at": None, "lease_until": None, "effect_started_at": None, "cancel_requested_at": None,
    "effect_key": "3f-7", "last_outcome": "transient", "last_error_class": "ThrottlingException",
    "last_error": "slow down\nframe", "stop_reason": None, "finished_at": None, "acknowledged_at": None, "checks": 0,
    "next_check_at": None, "review_by": None,
}  # fmt: skip


def said(job: dict[str, Any], kind: dict[str, Any] | None = None, attempts: list[dict[str, Any]] | None = None) -> str:
    shown = {"now": NOW, "job": JOB | job, "kind": KIND | (kind or {}), "attempts": attempts or []}
    return "\n".join(explain(shown | {"checks": [], "events": []}))


ENDED = {"finished_at": "2026-03-01T11:00:00Z"}
RUNNING = {
    "state": "claimed",
    "claimed_by": "poller/1",
    "claimed_at": "2026-03-01T11:59:50Z",
    "lease_until": "2026-03-01T12:00:35Z",
}
EXPIRED = RUNNING | {"lease_until": "2026-03-01T11:59:00Z"}


def test_a_waiting_job_says_when_it_runs_what_set_the_time_what_is_left_and_who_owns_it() -> None:
    text = said({})
    assert "Waiting: attempt 3 of 5 is due 2026-03-01 12:12:00 UTC (in 12 min)." in text
    assert "Backoff set the due time: 30 s after the first failure" in text
    assert "The last attempt ended as transient: ThrottlingException: slow down" in text
    assert "frame" not in text
    assert "Left: 3 attempts, 1 attempt that may end without an answer, $0.60 of this round's money, time until" in text
    assert "Kind close is owned by support." in text


def test_a_job_that_is_due_says_how_often_its_poller_looks() -> None:
    text = said({"due_at": "2026-03-01T11:57:00Z", "due_rule": "enqueue", "last_outcome": None})
    assert "has been due since 2026-03-01 11:57:00 UTC (3 min ago)" in text
    assert "looks every 1 min" in text


def test_a_paused_or_retired_kind_is_the_reason_that_nothing_happens() -> None:
    paused = {"paused_at": NOW, "paused_by": "ada", "paused_why": "the model is wrong"}
    assert "Nothing claims it now: ada paused the kind, because the model is wrong." in said({}, paused)
    assert "Nothing will claim it: kind close was retired" in said({}, {"retired_at": "2026-02-01T00:00:00Z"})


def test_a_running_job_says_who_runs_it_and_how_long_its_lease_holds() -> None:
    text = said(RUNNING)
    assert "Attempt 2 of 5 was started 2026-03-01 11:59:50 UTC (10 s ago) by poller/1." in text
    assert "Its lease holds until 2026-03-01 12:00:35 UTC (in 35 s)." in text


@pytest.mark.parametrize(
    ("kind", "stamp", "outcome"),
    [
        ({"idempotent": True}, None, "crashed"),
        ({"idempotent": False}, None, "uncertain"),
        ({"idempotent": False, "effect": "stamped"}, None, "crashed"),
        ({"idempotent": False, "effect": "stamped"}, NOW, "uncertain"),
    ],
)
def test_an_expired_lease_says_what_the_sweeper_will_make_of_it(
    kind: dict[str, Any], stamp: str | None, outcome: str
) -> None:
    assert f"The sweeper will record that attempt as {outcome}" in said(EXPIRED | {"effect_started_at": stamp}, kind)


def test_an_uncertain_job_names_the_reference_to_ask_the_receiver_about() -> None:
    text = said({"state": "uncertain", "last_outcome": "uncertain", "review_by": "2026-03-02T12:00:00Z"})
    assert "nobody knows whether its effect happened" in text
    assert "Ask the receiver about 3f-7" in text
    assert "A person should have settled it by 2026-03-02 12:00:00 UTC (in 1 d)." in text


def test_an_abandoned_job_names_the_limit_and_that_its_key_is_still_held() -> None:
    text = said(ENDED | {"state": "abandoned", "attempts": 5, "stop_reason": "attempts_exhausted"})
    assert "(attempts_exhausted): its 5 attempts are used up (max_attempts)." in text
    assert "It will not run again unless somebody replays it." in text
    assert "It still holds the key 'conversation:7'" in text
    assert "Nobody has acknowledged it yet." in text
    assert "Left:" not in text


def test_a_success_after_failures_says_how_many_attempts_it_took_and_no_old_error() -> None:
    done = ENDED | {"state": "succeeded", "stop_reason": "completed", "last_outcome": "succeeded", "attempts": 3}
    text = said(done | {"last_error_class": None, "last_error": None})
    assert "Succeeded 2026-03-01 11:00:00 UTC (1 h ago), in 3 attempts." in text
    assert "The last attempt" not in text


def test_a_late_answer_is_told() -> None:
    late = {"round": 1, "attempt": 1, "late_outcome": "succeeded"}
    assert "Attempt 1 of round 1 answered late: succeeded." in said({}, attempts=[late])


@pytest.mark.parametrize("reason", StopReason)
def test_every_stop_reason_has_words_of_its_own(reason: StopReason) -> None:
    job = JOB | {"stop_reason": reason.value, "deadline_at": NOW}
    others = {stop_rule(job | {"stop_reason": other.value}, KIND) for other in StopReason if other != reason}
    assert stop_rule(job, KIND) not in others


@pytest.mark.parametrize("rule", DueRule)
def test_every_due_rule_has_words_of_its_own(rule: DueRule) -> None:
    others = {due_rule(JOB | {"due_rule": other.value}, KIND) for other in DueRule if other != rule}
    assert due_rule(JOB | {"due_rule": rule.value}, KIND) not in others
