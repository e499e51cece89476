"""What comes next of a job, who decides it, and whether its effect may exist already."""

from typing import Any

import pytest

from stopline.states import State
from stopline_cli.effect import effect
from stopline_cli.outlook import Outlook, outlook
from tests.support.shown import JOB, KIND, NOW

LATER = "2026-03-01T13:00:00Z"
FAR = "2026-03-05T00:00:00Z"
ENDED = {"finished_at": "2026-03-01T11:00:00Z", "stop_reason": "permanent_failure"}
RUNNING = {"state": "claimed", "lease_until": "2026-03-01T12:00:35Z"}
UNKNOWN = {"state": "uncertain", "last_outcome": "uncertain", "review_by": LATER, "next_check_at": NOW}
UNASKED = UNKNOWN | {"checks": 5, "next_check_at": None}
PAUSED = {"paused_at": NOW, "paused_by": "ada", "paused_why": "x"}
OPEN = {"paused_at": NOW, "paused_by": "breaker", "paused_why": "x", "paused_until": LATER}


def ahead(job: dict[str, Any], kind: dict[str, Any] | None = None) -> Outlook:
    return outlook(JOB | job, KIND | (kind or {}), NOW)


@pytest.mark.parametrize(
    ("job", "kind", "next_at", "set_by", "decides"),
    [
        ({}, {}, JOB["due_at"], "backoff", "the kind's limits"),
        ({}, PAUSED, None, "pause", "ada, who paused the kind"),
        ({}, PAUSED | {"paused_until": LATER}, LATER, "pause", "ada, who paused the kind"),
        ({}, PAUSED | {"paused_until": "2026-03-01T12:01:00Z"}, JOB["due_at"], "backoff", "ada, who paused the kind"),
        ({}, PAUSED | {"paused_until": "2026-03-01T11:00:00Z"}, JOB["due_at"], "backoff", "the kind's limits"),
        ({}, OPEN, LATER, "breaker", "the breaker, by a probe"),
        ({}, {"retired_at": NOW}, None, "retired kind", "support, the owner"),
        ({}, {"over_budget": True}, "2026-03-02T00:00:00+00:00", "daily budget", "the kind's limits"),
        ({"due_at": FAR}, {"over_budget": True}, FAR, "backoff", "the kind's limits"),
        (RUNNING, {}, RUNNING["lease_until"], "lease", "the running attempt"),
        (UNKNOWN, {}, LATER, "review_within", "support, the owner"),
        (UNKNOWN, {"reconciles": True}, NOW, "settle", "the receiver"),
        (UNKNOWN | {"checks": 2}, {"reconciles": True}, NOW, "check backoff", "the receiver"),
        (UNASKED, {"reconciles": True}, LATER, "review_within", "support, the owner"),
        (UNKNOWN, {"reconciles": True, "retired_at": NOW}, LATER, "review_within", "support, the owner"),
        (ENDED | {"state": "abandoned"}, {}, None, None, "support, the owner"),
        (
            ENDED | {"state": "abandoned", "replay_by": "ada", "next_check_at": LATER},
            {"reconciles": True}, LATER, "replay request", "the receiver",
        ),
        (ENDED | {"state": "succeeded"}, {}, None, None, "nobody: it is done"),
    ],
)  # fmt: skip
def test_each_job_says_what_comes_next_what_set_that_and_who_decides(
    job: dict[str, Any], kind: dict[str, Any], next_at: str | None, set_by: str | None, decides: str
) -> None:
    found = ahead(job, kind)
    assert (found.next_at, found.set_by, found.decides) == (next_at, set_by, decides)


@pytest.mark.parametrize(
    ("job", "kind", "answer"),
    [
        ({"fence": 0, "last_outcome": None}, {}, "no"),
        ({}, {}, "maybe"),
        ({"attempts": 1, "crashes": 0, "last_outcome": "permanent"}, {}, "no"),
        ({"attempts": 0, "crashes": 0, "last_outcome": "released"}, {}, "no"),
        ({"attempts": 1, "crashes": 0, "last_outcome": "permanent", "round": 2}, {}, "maybe"),
        ({}, {"idempotent": False}, "no"),
        (RUNNING, {}, "maybe"),
        (RUNNING, {"idempotent": False}, "maybe"),
        (RUNNING, {"idempotent": False, "effect": "stamped"}, "no"),
        (RUNNING | {"effect_started_at": NOW}, {"idempotent": False, "effect": "stamped"}, "maybe"),
        (UNKNOWN, {"idempotent": False}, "maybe"),
        (ENDED | {"state": "succeeded"}, {"idempotent": False}, "yes"),
        (ENDED | {"state": "abandoned", "late_success": True}, {"idempotent": False}, "yes"),
        (ENDED | {"state": "cancelled", "last_outcome": "uncertain"}, {"idempotent": False}, "maybe"),
        (ENDED | {"state": "cancelled"}, {"idempotent": False}, "no"),
    ],
)
def test_whether_the_effect_may_exist_is_maybe_in_doubt(job: dict[str, Any], kind: dict[str, Any], answer: str) -> None:
    found = effect(JOB | job, KIND | kind)
    assert (found.may_exist, bool(found.why)) == (answer, True)


@pytest.mark.parametrize("state", State)
def test_every_state_says_which_states_may_follow(state: State) -> None:
    job = {"state": state, "lease_until": NOW, "stop_reason": "completed", "finished_at": NOW}
    following = {sentence.split(",")[0].split(" ")[0] for sentence in ahead(job).may_happen}
    assert (
        following
        == {
            State.PENDING: {"claimed", "abandoned", "cancelled"},
            State.CLAIMED: {"succeeded", "pending", "abandoned"},
            State.UNCERTAIN: {"succeeded", "pending"},
            State.SUCCEEDED: set(),
            State.ABANDONED: {"pending", "succeeded"},
            State.CANCELLED: {"pending"},
        }[state]
    )


def test_limits_and_requests_change_what_may_follow() -> None:
    last = ahead(RUNNING | {"attempts": 5, "cancel_requested_at": NOW}, {"idempotent": False}).may_happen
    assert [sentence.split(",")[0] for sentence in last] == ["succeeded", "uncertain", "cancelled"]
    assert ahead(UNKNOWN | {"attempts": 5}).may_happen[1].startswith("abandoned, if its effect does not exist")
    assert ahead(UNKNOWN | {"cancel_requested_at": NOW}).may_happen[1].startswith("cancelled, if its effect")
