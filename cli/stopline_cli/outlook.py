"""What comes next of a job: when, what set that, what may happen then, and who decides. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stopline.states import State
from stopline_cli.effect import Effect, effect
from stopline_cli.kind_state import BREAKER, is_held, next_day
from stopline_cli.words import instant

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Outlook:
    """`next_at` is ISO text, None when nothing is planned; `set_by` is the rule or event that set it. `may_happen` are
    the states that can follow, each with its condition; `decides` is who or what chooses among them."""

    next_at: str | None
    set_by: str | None
    may_happen: list[str]
    decides: str
    effect: Effect


def outlook(job: Row, kind: Row, now: str) -> Outlook:
    """The outlook of one job at `now`."""
    set_by: str | None
    match State(job["state"]):
        case State.PENDING:
            next_at, set_by = _next_claim(job, kind, now)
            return Outlook(next_at, set_by, _of_pending(job, kind), _of_waiting(job, kind, now), effect(job, kind))
        case State.CLAIMED:
            return Outlook(
                job["lease_until"], "lease", _of_claimed(job, kind), "the running attempt",
                effect(job, kind),
            )  # fmt: skip
        case State.UNCERTAIN:
            asked = is_asked(job, kind)
            may = ["succeeded, if its effect is found", _not_applied(job, kind)]
            if asked:
                return Outlook(job["next_check_at"], _check_rule(job), may, "the receiver", effect(job, kind))
            return Outlook(job["review_by"], "review_within", may, _owner(kind), effect(job, kind))
        case State.SUCCEEDED:
            return Outlook(None, None, [], "nobody: it is done", effect(job, kind))
    return _stopped(job, kind)


def is_asked(job: Row, kind: Row) -> bool:
    """Whether the kind's poller still asks the receiver about this job."""
    return bool(
        kind["reconciles"]
        and kind["retired_at"] is None
        and job["next_check_at"] is not None
        and job["checks"] < kind["max_checks"]
    )


def _stopped(job: Row, kind: Row) -> Outlook:
    found = effect(job, kind)
    if job["replay_by"] is not None:
        may = ["succeeded, if its effect is found", "pending in a new round, if its effect does not exist"]
        may.append(f"{job['state']} as it is, if the receiver cannot say")
        return Outlook(job["next_check_at"], "replay request", may, "the receiver", found)
    may = ["pending in a new round, by a replay"]
    if job["state"] == State.ABANDONED:
        may.append("succeeded, if somebody finds its effect and reconciles it")
    return Outlook(None, None, may, _owner(kind), found)


def _next_claim(job: Row, kind: Row, now: str) -> tuple[str | None, str]:
    """When the job can be claimed at the earliest."""
    due, rule = job["due_at"], job["due_rule"]
    if not is_held(kind, now):
        day = next_day(now)
        return (day, "daily budget") if kind["over_budget"] and instant(day) > instant(due) else (due, rule)
    if kind["retired_at"] is not None:
        return None, "retired kind"
    if kind["paused_until"] is None:
        return None, "pause"
    by = "breaker" if kind["paused_by"] == BREAKER else "pause"
    return (kind["paused_until"], by) if instant(kind["paused_until"]) > instant(due) else (due, rule)


def _of_pending(job: Row, kind: Row) -> list[str]:
    may = ["claimed, when it is due"]
    if job["deadline_at"] is not None or job["give_up_at"] is not None:
        may.append("abandoned, if its time runs out while it waits")
    return [*may, "cancelled, by a person"]


def _of_claimed(job: Row, kind: Row) -> list[str]:
    may = ["succeeded"]
    if not kind["idempotent"]:
        may.append("uncertain, if nobody can know what became of its effect")
    if job["cancel_requested_at"] is not None:
        return [*may, "cancelled, if it fails: that was requested"]
    if job["attempts"] < job["max_attempts"]:
        may.append("pending, if it fails and the limits leave another attempt")
    return [*may, "abandoned, if it fails for good or reaches a limit"]


def _not_applied(job: Row, kind: Row) -> str:
    if job["cancel_requested_at"] is not None:
        return "cancelled, if its effect does not exist: a cancel was requested"
    if job["attempts"] >= job["max_attempts"] or job["crashes"] >= kind["max_crashes"]:
        return "abandoned, if its effect does not exist: no limit leaves another attempt"
    return "pending, if its effect does not exist and the limits leave another attempt"


def _check_rule(job: Row) -> str:
    return "settle" if job["checks"] == 0 else "check backoff"


def _of_waiting(job: Row, kind: Row, now: str) -> str:
    if not is_held(kind, now):
        return "the kind's limits"
    if kind["retired_at"] is not None:
        return _owner(kind)
    return "the breaker, by a probe" if kind["paused_by"] == BREAKER else f"{kind['paused_by']}, who paused the kind"


def _owner(kind: Row) -> str:
    return f"{kind['owner']}, the owner"
