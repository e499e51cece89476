"""`stopline show` says in words why a job is where it is, whether it will run again, when, and what rule says so."""

from typing import Any

import pytest

from stopline.states import DueRule, StopReason
from stopline_cli.explain import explain
from stopline_cli.rules import due_rule, stop_rule
from tests.support.shown import JOB, KIND, NOW


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
    assert (
        "Nothing claims it now: ada paused kind close, until somebody resumes it, because the model is wrong."
        in said({}, paused)
    )
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
    assert "The receiver knows it as 3f-7" in text
    assert "Kind close has no reconcile hook: a person asks the receiver" in text
    assert "support should have settled it by 2026-03-02 12:00:00 UTC (in 1 d)." in text


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"next_check_at": "2026-03-01T12:02:00Z"}, "at 2026-03-01 12:02:00 UTC (in 2 min); 0 of 5 checks were made."),
        (
            {"next_check_at": NOW, "checks": 2},
            "The poller asks the receiver at its next poll; 2 of 5 checks were made.",
        ),
        ({"checks": 5}, "Nobody asks the receiver any more: 5 of 5 checks were made. A person must decide."),
        ({"cancel_requested_at": NOW}, "A cancel was requested: if its effect does not exist, the job is cancelled."),
    ],
)
def test_an_uncertain_job_of_a_kind_that_can_ask_says_when_its_receiver_is_asked(
    columns: dict[str, Any], words: str
) -> None:
    assert words in said({"state": "uncertain", "last_outcome": "uncertain"} | columns, {"reconciles": True})


def test_a_requested_replay_says_who_asked_why_and_that_the_receiver_comes_first() -> None:
    asked = {"replay_by": "ada", "replay_why": "fixed\nJob 8", "next_check_at": NOW}
    stopped = ENDED | {"state": "abandoned", "stop_reason": "permanent_failure"}
    text = said(stopped | asked, {"reconciles": True})
    assert "ada asked for a replay, because fixed." in text
    assert "The receiver is asked first, at its next poll; 0 of 5 checks were made." in text
    assert "unless somebody replays it" not in text
    assert "the sweep closes the request" in said(stopped | asked | {"checks": 5}, {"reconciles": True})


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ({"paused_until": "2026-03-01T12:05:00Z"}, "It cools down until 2026-03-01 12:05:00 UTC (in 5 min); then one"),
        ({"paused_until": NOW}, "It cooled down 2026-03-01 12:00:00 UTC (now): the next claim is a probe"),
        (
            {"paused_until": NOW, "probe_job": 9, "probe_until": "2026-03-01T12:01:00Z"},
            "Job 9 is the probe: its success resumes the kind. The probe expires 2026-03-01 12:01:00 UTC (in 1 min).",
        ),
    ],
)
def test_an_open_breaker_says_why_until_when_and_what_becomes_of_its_probe(state: dict[str, Any], words: str) -> None:
    opened = {"paused_at": NOW, "paused_by": "breaker", "paused_why": "60 attempts failed alike", "breaker_level": 2}
    text = said({}, opened | state)
    assert "The breaker of kind close is open (2 cool-downs so far), because 60 attempts failed alike." in text
    assert words in text


def test_a_pause_that_is_over_and_a_kind_that_is_full_or_has_spent_its_day_are_told_as_they_are() -> None:
    over = {"paused_at": NOW, "paused_by": "ada", "paused_why": "x", "paused_until": "2026-03-01T11:00:00Z"}
    assert "paused" not in said({}, over)
    assert "runs 3 jobs already, as many as it may (concurrency)." in said({}, {"full": True, "concurrency": 3})
    spent = said({}, {"over_budget": True, "daily_budget_usd": 10})
    assert "The daily budget of kind close ($10.00) pays no further attempt until 2026-03-02 00:00:00 UTC" in spent


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
    late = {"round": 1, "attempt": 1, "late_outcome": "succeeded", "late_at": ENDED["finished_at"]}
    stopped = ENDED | {"state": "abandoned", "stop_reason": "attempts_exhausted"}
    done = ENDED | {"state": "succeeded", "stop_reason": "completed", "last_outcome": "succeeded"}
    name = "Attempt 1 of round 1 answered late: succeeded."
    assert f"{name} That changed no state." in said(stopped, attempts=[late])
    assert f"{name} It was taken as the truth." in said(done, attempts=[late])


def test_the_last_error_of_an_earlier_round_and_a_replays_due_time_are_told_apart() -> None:
    text = said({"round": 2, "attempts": 0, "due_rule": "enqueue"})
    assert "A replay opened this round" in text
    assert "The last attempt, of an earlier round, ended as transient" in text


@pytest.mark.parametrize("reason", StopReason)
def test_every_stop_reason_has_words_of_its_own(reason: StopReason) -> None:
    job = JOB | {"stop_reason": reason.value, "deadline_at": NOW}
    others = {stop_rule(job | {"stop_reason": other.value}, KIND) for other in StopReason if other != reason}
    assert stop_rule(job, KIND) not in others


@pytest.mark.parametrize("rule", DueRule)
def test_every_due_rule_has_words_of_its_own(rule: DueRule) -> None:
    others = {due_rule(JOB | {"due_rule": other.value}, KIND) for other in DueRule if other != rule}
    assert due_rule(JOB | {"due_rule": rule.value}, KIND) not in others
