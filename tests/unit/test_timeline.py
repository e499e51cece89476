"""The timeline of a job: attempts, checks and events in the order of their times, each on one line."""

from typing import Any

from stopline_cli.timeline import timeline
from tests.support.shown import JOB, KIND, NOW

ATTEMPT: dict[str, Any] = {
    "fence": 1, "round": 1, "attempt": 1, "started_at": "2026-03-01T11:01:00Z", "finished_at": "2026-03-01T11:02:00Z",
    "worker": "w1", "outcome": "uncertain", "error_class": "ReadTimeout", "error": "sent, no answer\nframe", "steps": 0,
    "cost_usd": 0.2, "next_due_at": None, "late_outcome": None, "late_error": None, "late_at": None,
}  # fmt: skip
CHECK: dict[str, Any] = {
    "round": 1, "number": 1, "asked_at": "2026-03-01T11:04:00Z", "answered_at": "2026-03-01T11:04:01Z", "worker": "w2",
    "answer": "not_applied", "detail": "unknown reference",
}  # fmt: skip
EVENT: dict[str, Any] = {
    "id": 5, "at": "2026-03-01T11:04:01Z", "action": "reconciled", "actor": "w2", "reason": "unknown reference",
    "effects_checked": None, "before": {"state": "uncertain"}, "after": {"state": "pending", "answer": "not_applied"},
}  # fmt: skip


def shown(**parts: Any) -> list[tuple[str, str, str]]:
    empty: dict[str, Any] = {"attempts": [], "checks": [], "events": [], "kind_events": []}
    entries = timeline({"now": NOW, "job": JOB, "kind": KIND} | empty | parts)
    return [(entry.at[11:19], entry.by, entry.what) for entry in entries]


def test_attempts_checks_and_events_are_told_in_the_order_of_their_times() -> None:
    opened = EVENT | {
        "id": 6,
        "at": "2026-03-01T11:03:00Z",
        "action": "breaker_opened",
        "actor": "breaker",
        "reason": "Busy",
    }
    opened["after"] = {"paused_until": "2026-03-01T11:03:30Z"}
    assert shown(attempts=[ATTEMPT], checks=[CHECK], events=[EVENT], kind_events=[opened]) == [
        ("11:00:00", "", "enqueued"),
        ("11:01:00", "w1", "attempt 1 of round 1 started"),
        ("11:02:00", "w1", "attempt 1 of round 1 ended: uncertain: ReadTimeout: sent, no answer · $0.20"),
        ("11:03:00", "breaker", "the kind's breaker opened until 2026-03-01 11:03:30 UTC · Busy"),
        ("11:04:00", "w2", "check 1 of round 1: the receiver was asked"),
        ("11:04:01", "w2", "check 1 of round 1 answered: not applied: unknown reference"),
        ("11:04:01", "w2", "reconciled as not applied · unknown reference"),
    ]


def test_at_one_time_an_attempt_starts_before_it_ends_and_an_event_follows_what_led_to_it() -> None:
    at = "2026-03-01T11:00:00.000000Z"
    one = ATTEMPT | {"started_at": at, "finished_at": at, "next_due_at": "2026-03-01T11:00:30Z"}
    two = one | {"fence": 2, "attempt": 2, "outcome": "permanent", "next_due_at": None}
    stopped = EVENT | {"at": at, "action": "stopped", "reason": "permanent_failure", "after": None}
    words = [what for _, _, what in shown(attempts=[two, one], events=[stopped])]
    assert [word.split(":")[0] for word in words] == [
        "enqueued",
        "attempt 1 of round 1 started",
        "attempt 1 of round 1 ended",
        "attempt 2 of round 1 started",
        "attempt 2 of round 1 ended",
        "stopped · permanent_failure",
    ]
    assert words[2].endswith("next due 2026-03-01 11:00:30 UTC")


def test_what_is_going_on_is_told_too() -> None:
    running = JOB | {
        "state": "claimed", "claimed_at": "2026-03-01T11:59:00Z", "claimed_by": "w1",
        "effect_started_at": "2026-03-01T11:59:30Z",
    }  # fmt: skip
    assert [what for _, _, what in shown(job=running)][1:] == [
        "attempt 2 of round 1 started and is running",
        "attempt 2 of round 1 said that it begins to send",
    ]
    open_check = CHECK | {"answered_at": None, "answer": "unknown"}
    assert shown(checks=[open_check])[1][2] == "check 1 of round 1: the receiver was asked; no answer yet"
    late = ATTEMPT | {"late_outcome": "succeeded", "late_at": "2026-03-01T11:30:00Z"}
    assert shown(attempts=[late])[3][2] == "attempt 1 of round 1 answered late: succeeded"


def test_what_people_wrote_stays_on_its_line_and_an_unknown_action_is_told_by_its_name() -> None:
    said = EVENT | {
        "action": "new\naction",
        "actor": "eve\nJob 8",
        "reason": "a\nb",
        "effects_checked": "c\nd",
        "after": None,
    }
    assert shown(events=[said])[1][1:] == ("eve\\nJob 8", "new\\naction · a · effects checked: c")
