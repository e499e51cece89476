"""Why a job is where it is: what `stopline show` reads, in sentences. Pure: no database and no clock of its own."""

from collections.abc import Callable, Mapping
from typing import Any

from stopline.states import State
from stopline_cli.kind_state import kind_state
from stopline_cli.outlook import is_asked
from stopline_cli.rules import due_rule, stop_rule
from stopline_cli.words import away, counted, dated, failure, line, one_line, span, usd

Row = Mapping[str, Any]

_STOPPED = "It will not run again unless somebody replays it."


def explain(shown: Row) -> list[str]:
    """Sentences about one job, in the order in which somebody at night wants them.

    `shown` is what `ReadStore.job` returns: `now`, `job`, `kind`, `attempts`, `checks` and `events`.
    """
    job, kind, now = shown["job"], shown["kind"], shown["now"]
    sentences = _STATES[State(job["state"])](job, kind, now)
    if job["last_outcome"] not in (None, "succeeded"):
        sentences.append(_last_attempt(job))
    if job["finished_at"] is None:
        sentences += _limits(job, kind, now)
    sentences += _late(job, shown["attempts"])
    sentences.append(f"Kind {job['kind']} is owned by {line(kind['owner'])}.")
    return sentences


def _pending(job: Row, kind: Row, now: str) -> list[str]:
    attempt = f"attempt {job['attempts'] + 1} of {job['max_attempts']}"
    waiting = away(job["due_at"], now).startswith("in ")
    when = f"is due {dated(job['due_at'], now)}" if waiting else f"has been due since {dated(job['due_at'], now)}"
    found = [f"Waiting: {attempt} {when}.", due_rule(job, kind)]
    if not waiting:
        found.append(f"The poller of {kind['name']} looks every {span(kind['run_every'])}.")
    return found + kind_state(kind, now)


def _claimed(job: Row, kind: Row, now: str) -> list[str]:
    started = f"Attempt {job['attempts']} of {job['max_attempts']} was started {dated(job['claimed_at'], now)}"
    found = [f"Running: {started} by {line(job['claimed_by'])}."]
    if away(job["lease_until"], now).startswith("in "):
        found.append(f"Its lease holds until {dated(job['lease_until'], now)}.")
    else:
        outcome = "uncertain: its effect may have happened" if _crash_is_unknown(job, kind) else "crashed"
        found.append(f"Its lease ended {dated(job['lease_until'], now)} without an answer.")
        found.append(f"The sweeper will record that attempt as {outcome}.")
    if job["cancel_requested_at"] is not None:
        found.append(
            f"Cancel was requested {dated(job['cancel_requested_at'], now)}; it takes effect when the attempt ends."
        )
    return found


def _crash_is_unknown(job: Row, kind: Row) -> bool:
    if kind["idempotent"]:
        return False
    return kind["effect"] != "stamped" or job["effect_started_at"] is not None


def _uncertain(job: Row, kind: Row, now: str) -> list[str]:
    found = [
        "Uncertain: nobody knows whether its effect happened, so it will not be tried again by itself.",
        f"The receiver knows it as {job['effect_key']}: that reference is the same in every attempt.",
    ]
    asked = f"{job['checks']} of {kind['max_checks']} checks were made"
    if is_asked(job, kind):
        found.append(f"The poller asks the receiver {_from(job['next_check_at'], now)}; {asked}.")
    elif kind["reconciles"]:
        found.append(f"Nobody asks the receiver any more: {asked}. A person must decide.")
    else:
        found.append(f"Kind {kind['name']} has no reconcile hook: a person asks the receiver and reconciles the job.")
    if job["cancel_requested_at"] is not None:
        found.append("A cancel was requested: if its effect does not exist, the job is cancelled.")
    if job["review_by"] is not None:
        found.append(f"{line(kind['owner'])} should have settled it by {dated(job['review_by'], now)}.")
    return found


def _from(at: str, now: str) -> str:
    return f"at {dated(at, now)}" if away(at, now).startswith("in ") else "at its next poll"


def _succeeded(job: Row, kind: Row, now: str) -> list[str]:
    return [f"Succeeded {dated(job['finished_at'], now)}, in {_rounds(job)}. It will not run again."]


def _cancelled(job: Row, kind: Row, now: str) -> list[str]:
    return [f"Cancelled {dated(job['finished_at'], now)}.", *_replay(job, kind, now), *_key(job)]


def _abandoned(job: Row, kind: Row, now: str) -> list[str]:
    found = [
        f"Abandoned {dated(job['finished_at'], now)} ({job['stop_reason']}): {stop_rule(job, kind)}.",
        *_replay(job, kind, now),
        *_key(job),
    ]
    if job["acknowledged_at"] is None:
        found.append("Nobody has acknowledged it yet.")
    return found


def _replay(job: Row, kind: Row, now: str) -> list[str]:
    if job["replay_by"] is None:
        return [_STOPPED]
    asked = f"{line(job['replay_by'])} asked for a replay, because {one_line(job['replay_why'])}."
    if not is_asked(job, kind):
        return [asked, "The receiver is asked no more; the sweep closes the request."]
    made = f"{job['checks']} of {kind['max_checks']} checks were made"
    return [asked, f"The receiver is asked first, {_from(job['next_check_at'], now)}; {made}."]


_STATES: dict[State, Callable[[Row, Row, str], list[str]]] = {
    State.PENDING: _pending,
    State.CLAIMED: _claimed,
    State.UNCERTAIN: _uncertain,
    State.SUCCEEDED: _succeeded,
    State.ABANDONED: _abandoned,
    State.CANCELLED: _cancelled,
}


def _rounds(job: Row) -> str:
    attempts = counted(job["attempts"], "attempt")
    return attempts if job["round"] == 1 else f"{attempts} of round {job['round']}"


def _key(job: Row) -> list[str]:
    if not job["holds_key"]:
        return []
    return [f"It still holds the key {job['key']!r}: enqueueing that key is answered `held`."]


def _last_attempt(job: Row) -> str:
    error = one_line(failure(job["last_error_class"], job["last_error"]))
    of = ", of an earlier round," if job["round"] > 1 and job["attempts"] == 0 else ""
    return f"The last attempt{of} ended as {job['last_outcome']}: {error}"


def _limits(job: Row, kind: Row, now: str) -> list[str]:
    """What is left of each limit of an unfinished job."""
    left = [counted(max(0, job["max_attempts"] - job["attempts"]), "attempt")]
    left.append(f"{counted(max(0, kind['max_crashes'] - job['crashes']), 'attempt')} that may end without an answer")
    if kind["per_job_usd"] is not None:
        left.append(f"{usd(max(0, float(kind['per_job_usd']) - float(job['cost_usd'])))} of this round's money")
    if job["give_up_at"] is not None:
        left.append(f"time until {dated(job['give_up_at'], now)}")
    elif kind["max_elapsed"] is not None:
        left.append(f"{span(kind['max_elapsed'])} from the first attempt on")
    sentences = [f"Left: {', '.join(left)}."]
    if job["deadline_at"] is not None:
        sentences.append(f"Its deadline is {dated(job['deadline_at'], now)}.")
    return sentences


def _late(job: Row, attempts: list[Row]) -> list[str]:
    found = []
    for attempt in attempts:
        if attempt["late_outcome"] is not None:
            name = f"Attempt {attempt['attempt']} of round {attempt['round']}"
            taken = job["state"] == State.SUCCEEDED and attempt["late_at"] == job["finished_at"]
            then = "It was taken as the truth." if taken else "That changed no state."
            found.append(f"{name} answered late: {attempt['late_outcome']}. {then}")
    return found
