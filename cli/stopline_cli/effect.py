"""Whether a job's effect may already exist, from what its row says. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from stopline.states import Outcome, State

Row = Mapping[str, Any]

_UNANSWERED = frozenset({Outcome.TRANSIENT, Outcome.TIMEOUT, Outcome.CRASHED, Outcome.UNCERTAIN})
"""Outcomes after which a kind that may repeat its effect does not ask what became of it."""


class MayExist(StrEnum):
    """Whether the effect may already exist."""

    NO = "no"
    MAYBE = "maybe"
    YES = "yes"


@dataclass(frozen=True, slots=True)
class Effect:
    """The answer, and the sentence that says why."""

    may_exist: MayExist
    why: str


def effect(job: Row, kind: Row) -> Effect:
    """Whether the effect of a job may exist. In doubt the answer is maybe."""
    state = State(job["state"])
    if state is State.SUCCEEDED:
        return Effect(MayExist.YES, "the job succeeded")
    if job["late_success"]:
        return Effect(MayExist.YES, "an attempt that had been given up reported success later")
    if job["fence"] == 0:
        return Effect(MayExist.NO, "no attempt has started")
    if state is State.UNCERTAIN:
        return Effect(MayExist.MAYBE, "nobody knows how the last attempt ended")
    if state is State.CLAIMED:
        return _running(job, kind)
    return _ended(job, kind, state)


def _running(job: Row, kind: Row) -> Effect:
    if kind["effect"] == "stamped" and job["effect_started_at"] is not None:
        return Effect(MayExist.MAYBE, "the running attempt has said that it begins to send")
    if kind["effect"] == "stamped" and not kind["idempotent"]:
        return Effect(MayExist.NO, "the running attempt has not said yet that it begins to send")
    return Effect(MayExist.MAYBE, "an attempt is running")


def _ended(job: Row, kind: Row, state: State) -> Effect:
    last = None if job["last_outcome"] is None else Outcome(job["last_outcome"])
    if not kind["idempotent"]:
        # An unknown outcome of such a kind waits as uncertain until an answer, or a person who cancels, ends that.
        if state is State.CANCELLED and last in (Outcome.UNCERTAIN, Outcome.TIMEOUT, Outcome.CRASHED):
            return Effect(MayExist.MAYBE, "its last attempt ended unknown, and a person cancelled it")
        return Effect(MayExist.NO, "no attempt sent anything, or what it sent was found not to exist")
    if last in _UNANSWERED or job["crashes"] or job["round"] > 1 or job["attempts"] > 1:
        return Effect(
            MayExist.MAYBE, "a failed attempt may have had it; the kind is idempotent, so repeating it is safe"
        )
    return Effect(MayExist.NO, "its only attempt was refused for good, or was handed back before it began")
