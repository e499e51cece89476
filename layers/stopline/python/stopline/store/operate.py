"""What named people do to jobs and kinds."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, LiteralString

from stopline.errors import InvalidInput
from stopline.payload import check_time
from stopline.states import OperatorAnswer, State, StopReason
from stopline.store.connection import Session

TEXT_BYTES = 2000
"""The most that an actor, a reason and a statement may have, in bytes of UTF-8."""
_LARGEST_ID = 2**63 - 1


@dataclass(frozen=True, slots=True)
class JobChange:
    """What became of an action on a job, and where the job is now."""

    job_id: int
    answer: OperatorAnswer
    state: State
    stop_reason: StopReason | None


@dataclass(frozen=True, slots=True)
class KindChange:
    """What became of a pause or its end. `paused_until` is ISO text in UTC; None without an end, or when not paused."""

    kind: str
    answer: OperatorAnswer
    paused_until: str | None


class OperateStore:
    """The engine's operator functions over one session.

    Each writes its event in the same transaction. Said twice, it answers `already_done` and adds nothing, so a call
    whose reply was lost may be repeated. What the rules do not allow is raised as `Refused`, what is no job, kind or
    text as `InvalidInput`, both in the database's own words.
    """

    def __init__(self, session: Session) -> None:
        self.session = session

    def cancel(self, job_id: int, actor: str, reason: str, effects_checked: str | None = None) -> JobChange:
        """Stop a job. `requested` of a running one: its attempt decides. An uncertain job needs `effects_checked`: how
        somebody made sure what became of its effect."""
        return self._job("cancel", "%s, %s, %s, %s", job_id, actor, reason, _checked(effects_checked))

    def replay(
        self, job_id: int, actor: str, reason: str, effects_checked: str, deadline_at: datetime | None = None
    ) -> JobChange:
        """Open a new round of a stopped job. `requested` where the kind can ask its receiver: that is done first.
        `deadline_at` takes the place of the job's own, which must lie ahead."""
        deadline = None if deadline_at is None else check_time("deadline", deadline_at)
        checked = _checked(effects_checked)
        return self._job("replay", "%s, %s, %s, %s, %s", job_id, actor, reason, checked, deadline)

    def reconcile(self, job_id: int, actor: str, reason: str, effects_checked: str, *, applied: bool) -> JobChange:
        """Settle an unknown outcome: the effect exists (`applied`, also of an abandoned job), or it does not."""
        answer = "applied" if applied else "not_applied"
        checked = _checked(effects_checked)
        return self._job("reconcile", "%s, %s, %s, %s, %s", job_id, actor, reason, checked, answer)

    def acknowledge(self, job_id: int, actor: str, reason: str) -> JobChange:
        """Say that an abandoned job was seen. Nothing else changes: it goes on holding its key."""
        return self._job("acknowledge", "%s, %s, %s", job_id, actor, reason)

    def release_key(self, job_id: int, actor: str, reason: str) -> JobChange:
        """Let a stopped job's key go, so that new work may have it."""
        return self._job("release_key", "%s, %s, %s", job_id, actor, reason)

    def pause_kind(self, kind: str, actor: str, reason: str, until: datetime | None = None) -> KindChange:
        """Start no attempt of a kind until it is resumed, or until `until`. Deadlines go on."""
        end = None if until is None else check_time("until", until)
        return self._kind("pause_kind", "%s, %s, %s, %s", kind, actor, reason, end)

    def resume_kind(self, kind: str, actor: str, reason: str) -> KindChange:
        """End a kind's pause, a person's or the breaker's."""
        return self._kind("resume_kind", "%s, %s, %s", kind, actor, reason)

    def _job(self, function: LiteralString, marks: LiteralString, job_id: int, *values: Any) -> JobChange:
        if type(job_id) is not int or not 1 <= job_id <= _LARGEST_ID:
            raise InvalidInput("job", f"is {job_id!r}; a job's id is a whole number from 1 to {_LARGEST_ID}")
        _check_who_and_why(values)
        statement: LiteralString = f"select answer, state, stop_reason from stopline.{function}({marks})"
        ((answer, state, stop),) = self.session.rows(statement, (job_id, *values))
        return JobChange(job_id, OperatorAnswer(answer), State(state), None if stop is None else StopReason(stop))

    def _kind(self, function: LiteralString, marks: LiteralString, kind: str, *values: Any) -> KindChange:
        _check_text("kind", kind)
        _check_who_and_why(values)
        statement: LiteralString = f"select answer, kind, paused_until from stopline.{function}({marks})"
        ((answer, name, until),) = self.session.rows(statement, (kind, *values))
        return KindChange(name, OperatorAnswer(answer), until)


def _check_who_and_why(values: tuple[Any, ...]) -> None:
    for field, value in zip(("actor", "reason"), values, strict=False):
        _check_text(field, value)


def _checked(statement: str | None) -> str | None:
    if statement is not None:
        _check_text("effects_checked", statement)
    return statement


def _check_text(field: str, value: str) -> None:
    """What the driver would stumble over; the rest the database refuses itself."""
    if not isinstance(value, str):
        raise InvalidInput(field, f"must be text, got {type(value).__name__}")
    if "\0" in value:
        raise InvalidInput(field, "holds a NUL character, which PostgreSQL text cannot; remove it")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidInput(field, "is not text in UTF-8; write it again") from None
    if size > TEXT_BYTES:
        raise InvalidInput(
            field, f"is {size:,} bytes, the limit is {TEXT_BYTES:,}; put the rest where it can be linked to"
        )
