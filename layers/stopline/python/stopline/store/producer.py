"""Enqueue, in the caller's own transaction: the job exists exactly if the caller's other changes do.

The caller's database user needs the role `stopline_producer` (`grant stopline_producer to my_app`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import psycopg

from stopline.errors import InvalidInput
from stopline.limits import MAX_ATTEMPTS, PAYLOAD_BYTES
from stopline.payload import check_key, check_time, encode_payload
from stopline.states import EnqueueAnswer, State, StopReason
from stopline.store.faults import engine_error

_PRIORITIES = range(4)


@dataclass(frozen=True, slots=True)
class Item:
    """One piece of work. `priority` is 0 (first) to 3 (last); times are timezone-aware.

    `key` deduplicates: while a job of this key is open, or stopped and still holding it, no second one is made.
    `max_attempts` may only lower the kind's.
    """

    payload: Any
    key: str | None = None
    priority: int = 1
    due_at: datetime | None = None
    deadline_at: datetime | None = None
    max_attempts: int | None = None


@dataclass(frozen=True, slots=True)
class Enqueued:
    """What became of one item: for `open`, `held` and `conflict` the job, state and stop reason are the key holder's;
    for `invalid`, `error` names the field and the rule."""

    answer: EnqueueAnswer
    job_id: int | None
    state: State | None
    stop_reason: StopReason | None
    error: str | None = None


def enqueue(
    conn: psycopg.Connection,
    kind: str,
    payload: Any,
    *,
    key: str | None = None,
    priority: int = 1,
    due_at: datetime | None = None,
    deadline_at: datetime | None = None,
    max_attempts: int | None = None,
) -> Enqueued:
    """Enqueue one job. Raises InvalidInput naming the field and the rule before anything is written."""
    item = Item(payload, key, priority, due_at, deadline_at, max_attempts)
    text = _checked(item)
    (answer,) = _send(conn, kind, [(item, text)])
    if answer.error is not None:
        field, _, rule = answer.error.partition(": ")
        raise InvalidInput(field, rule)
    return answer


def enqueue_many(conn: psycopg.Connection, kind: str, items: Sequence[Item]) -> list[Enqueued]:
    """Enqueue a batch in one call, answered in the order given. A bad item is answered `invalid`; the others are
    unaffected. Raises InvalidInput only for the kind.

    Callers whose batches share keys may rarely deadlock while the keys' holders finish: a psycopg DeadlockDetected
    means that the transaction is to be repeated.
    """
    answers: dict[int, Enqueued] = {}
    good: list[tuple[int, Item, str]] = []
    for place, item in enumerate(items):
        try:
            good.append((place, item, _checked(item)))
        except InvalidInput as error:
            answers[place] = Enqueued(EnqueueAnswer.INVALID, None, None, None, str(error))
    sent = _send(conn, kind, [(item, text) for _, item, text in good])
    answers |= {place: answer for (place, _, _), answer in zip(good, sent, strict=True)}
    return [answers[place] for place in range(len(items))]


def _checked(item: Item) -> str:
    """The payload as JSON text, once every field has been checked."""
    check_key(item.key)
    if isinstance(item.priority, bool) or item.priority not in _PRIORITIES:
        raise InvalidInput("priority", f"is {item.priority!r}; a priority is 0 (first) to 3 (last)")
    for field, value in (("due_at", item.due_at), ("deadline_at", item.deadline_at)):
        if value is not None:
            check_time(field, value)
    cap = item.max_attempts
    if cap is not None and (type(cap) is not int or not 1 <= cap <= MAX_ATTEMPTS):
        raise InvalidInput("max_attempts", f"is {cap!r}; it is a whole number from 1 to {MAX_ATTEMPTS}")
    return encode_payload(item.payload, PAYLOAD_BYTES)


def _send(conn: psycopg.Connection, kind: str, items: Sequence[tuple[Item, str]]) -> list[Enqueued]:
    try:
        rows = conn.execute(
            "select item, answer, job_id, state, stop_reason, error from stopline.enqueue_many("
            "%s, %s::jsonb[], %s::text[], %s::integer[], %s::timestamptz[], %s::timestamptz[], %s::integer[]) "
            "order by item",
            (
                kind,
                [text for _, text in items],
                [item.key for item, _ in items],
                [item.priority for item, _ in items],
                [item.due_at for item, _ in items],
                [item.deadline_at for item, _ in items],
                [item.max_attempts for item, _ in items],
            ),
        ).fetchall()
    except psycopg.Error as error:
        raise engine_error(error) or error from error
    return [
        Enqueued(
            EnqueueAnswer(answer),
            job_id,
            None if state is None else State(state),
            None if stop_reason is None else StopReason(stop_reason),
            error,
        )
        for _, answer, job_id, state, stop_reason, error in rows
    ]
