"""Why a job is where it is: what `stopline show` reads, in sentences. Pure: no database and no clock of its own."""

from collections.abc import Callable, Mapping
from typing import Any

from stopline.states import State
from stopline_cli.rules import due_rule, stop_rule
from stopline_cli.words import away, counted, dated, failure, span, usd

Row = Mapping[str, Any]

_STOPPED = "It will not run again unless somebody replays it."
_ERROR_CHARACTERS = 300


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
    sentences += _late(shown["attempts"])
    sentences.append(f"Kind {job['kind']} is owned by {kind['owner']}.")
    return sentences


def _pending(job: Row, kind: Row, now: str) -> list[str]:
    attempt = f"attempt {job['attempts'] + 1} of {job['max_attempts']}"
    waiting = away(job["due_at"], now).startswith("in ")
    when = f"is due {dated(job['due_at'], now)}" if waiting else f"has been due since {dated(job['due_at'], now)}"
    found = [f"Waiting: {attempt} {when}.", due_rule(job, kind)]
    if not waiting:
        found.append(f"The poller of {kind['name']} looks every {span(kind['run_every'])}.")
    return found + _kind_state(kind, now)


def _kind_state(kind: Row, now: str) -> list[str]:
    if kind["retired_at"] is not None:
        return [f"Nothing will claim it: kind {kind['name']} was retired {dated(kind['retired_at'], now)}."]
    if kind["paused_at"] is not None:
        until = f" until {dated(kind['paused_until'], now)}" if kind["paused_until"] else ""
        return [f"Nothing claims it now: {kind['paused_by']} paused the kind{until}, because {kind['paused_why']}."]
    return []


def _claimed(job: Row, kind: Row, now: str) -> list[str]:
    started = f"Attempt {job['attempts']} of {job['max_attempts']} was started {dated(job['claimed_at'], now)}"
    found = [f"Running: {started} by {job['claimed_by']}."]
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
        f"Ask the receiver about {job['effect_key']}: that reference is the same in every attempt.",
    ]
    if job["next_check_at"] is not None:
        asked = f"{job['checks']} of {kind['max_checks']} checks were made"
        # The poller does not ask by itself yet: a promise of a check that nobody makes would keep a person waiting.
        found.append(f"An answer is worth asking for from {dated(job['next_check_at'], now)}; {asked}.")
    if job["review_by"] is not None:
        found.append(f"A person should have settled it by {dated(job['review_by'], now)}.")
    return found


def _succeeded(job: Row, kind: Row, now: str) -> list[str]:
    return [f"Succeeded {dated(job['finished_at'], now)}, in {_rounds(job)}. It will not run again."]


def _cancelled(job: Row, kind: Row, now: str) -> list[str]:
    return [f"Cancelled {dated(job['finished_at'], now)}.", _STOPPED, *_key(job)]


def _abandoned(job: Row, kind: Row, now: str) -> list[str]:
    found = [
        f"Abandoned {dated(job['finished_at'], now)} ({job['stop_reason']}): {stop_rule(job, kind)}.",
        _STOPPED,
        *_key(job),
    ]
    if job["acknowledged_at"] is None:
        found.append("Nobody has acknowledged it yet.")
    return found


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
    first = failure(job["last_error_class"], job["last_error"]).partition("\n")[0]
    cut = f"{first[:_ERROR_CHARACTERS]}…" if len(first) > _ERROR_CHARACTERS else first
    return f"The last attempt ended as {job['last_outcome']}: {cut}"


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


def _late(attempts: list[Row]) -> list[str]:
    return [
        f"Attempt {attempt['attempt']} of round {attempt['round']} answered late: {attempt['late_outcome']}. "
        "That changed no state."
        for attempt in attempts
        if attempt["late_outcome"] is not None
    ]
