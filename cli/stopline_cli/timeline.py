"""Everything that happened to a job, in the order of its times: attempts, checks of the receiver, events. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from stopline.states import Outcome, State
from stopline_cli.words import failure, line, moment, one_line, usd

Row = Mapping[str, Any]

_ACTIONS = {
    "cancel_requested": "cancel requested",
    "cancelled": "cancelled",
    "cancel_too_late": "the cancel came too late",
    "replay_requested": "replay requested; the receiver is asked first",
    "replayed": "replayed: a new round",
    "replay_refused": "the requested replay was refused",
    "replay_unanswered": "the requested replay was closed: the receiver could not say",
    "reconciled": "reconciled",
    "checks_exhausted": "no more checks: a person must decide",
    "acknowledged": "acknowledged",
    "key_released": "its key was released",
    "stopped": "stopped",
    "late_success": "a late success was taken as the truth",
    "paused": "the kind was paused",
    "resumed": "the kind was resumed",
    "breaker_opened": "the kind's breaker opened",
    "breaker_extended": "the kind's breaker stayed open",
    "breaker_closed": "the kind's breaker closed",
}


@dataclass(frozen=True, slots=True)
class Entry:
    """One line: when (ISO text), who, and what, on one line."""

    at: str
    by: str
    what: str


def timeline(shown: Row) -> list[Entry]:
    """The entries of one job, oldest first. `shown` is what `ReadStore.job` returns."""
    job = shown["job"]
    ranked = [((job["created_at"], 0, 0, 0), Entry(job["created_at"], "", "enqueued"))]
    for attempt in shown["attempts"]:
        ranked += [((at, 1, attempt["fence"], rank), entry) for at, rank, entry in _attempt(attempt)]
    if job["state"] == State.CLAIMED:
        ranked += [((entry.at, 1, job["fence"], rank), entry) for rank, entry in enumerate(_running(job))]
    for check in shown["checks"]:
        ranked += [((entry.at, 2, check["number"], rank), entry) for rank, entry in enumerate(_check(check))]
    # At one time, the database writes what led to an event before the event.
    ranked += [((e["at"], 3, e["id"], 0), _event(e)) for e in (*shown["events"], *shown["kind_events"])]
    return [entry for _, entry in sorted(ranked, key=lambda pair: pair[0])]


def _attempt(attempt: Row) -> Iterator[tuple[str, int, Entry]]:
    name = f"attempt {attempt['attempt']} of round {attempt['round']}"
    worker = line(attempt["worker"])
    yield attempt["started_at"], 0, Entry(attempt["started_at"], worker, f"{name} started")
    yield attempt["finished_at"], 1, Entry(attempt["finished_at"], worker, f"{name} ended: {_ending(attempt)}")
    if attempt["late_outcome"] is not None:
        late = f": {one_line(attempt['late_error'])}" if attempt["late_error"] else ""
        what = f"{name} answered late: {attempt['late_outcome']}{late}"
        yield attempt["late_at"], 2, Entry(attempt["late_at"], worker, what)


def _ending(attempt: Row) -> str:
    parts = [str(attempt["outcome"])]
    if attempt["outcome"] != Outcome.SUCCEEDED:
        parts[0] += f": {one_line(failure(attempt['error_class'], attempt['error']))}"
    if float(attempt["cost_usd"]):
        parts.append(usd(attempt["cost_usd"]))
    if attempt["next_due_at"] is not None:
        parts.append(f"next due {moment(attempt['next_due_at'])}")
    return " · ".join(parts)


def _running(job: Row) -> Iterator[Entry]:
    worker = line(job["claimed_by"])
    name = f"attempt {job['attempts']} of round {job['round']}"
    yield Entry(job["claimed_at"], worker, f"{name} started and is running")
    if job["effect_started_at"] is not None:
        yield Entry(job["effect_started_at"], worker, f"{name} said that it begins to send")


def _check(check: Row) -> Iterator[Entry]:
    name = f"check {check['number']} of round {check['round']}"
    worker = line(check["worker"])
    if check["answered_at"] is None:
        yield Entry(check["asked_at"], worker, f"{name}: the receiver was asked; no answer yet")
        return
    yield Entry(check["asked_at"], worker, f"{name}: the receiver was asked")
    detail = f": {one_line(check['detail'])}" if check["detail"] else ""
    yield Entry(check["answered_at"], worker, f"{name} answered: {check['answer'].replace('_', ' ')}{detail}")


def _event(event: Row) -> Entry:
    after = event.get("after") or {}
    parts = [_ACTIONS.get(event["action"], line(event["action"]))]
    if answer := after.get("answer"):
        parts[0] += f" as {line(answer).replace('_', ' ')}"
    if event["action"] in ("paused", "breaker_opened", "breaker_extended") and after.get("paused_until"):
        parts[0] += f" until {moment(after['paused_until'])}"
    if event["reason"]:
        parts.append(one_line(event["reason"]))
    if event.get("effects_checked"):
        parts.append(f"effects checked: {one_line(event['effects_checked'])}")
    return Entry(event["at"], line(event["actor"]), " · ".join(parts))
