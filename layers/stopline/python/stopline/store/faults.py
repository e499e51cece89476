"""Which database errors are the infrastructure's, and what the engine's own errors mean.

An infrastructure error says nothing about a job: it is never recorded as the job's failure.
"""

import psycopg
from psycopg import errors as pg

from stopline.errors import InvalidInput, LeaseLost, Refused, StoplineError

_CONTENTION = frozenset({"40001", "40P01"})
"""serialization_failure, deadlock_detected: the session is well, the call may be repeated on it."""

_WAITED = frozenset({"55P03", "57014"})
"""lock_not_available, query_canceled: the role's lock timeout or statement timeout has been waited for."""

_INFRASTRUCTURE_CLASSES = frozenset({"08", "40", "53", "57", "58"})
"""Connection, rollback, insufficient resources, operator intervention (shutdown, cancel, timeout), system error."""

_INFRASTRUCTURE_STATES = frozenset({"25006", "25P02", "25P03", "55P03"})
"""A read-only node after a failover, an aborted transaction, an idle-transaction timeout, a lock timeout."""


def is_contention(error: BaseException) -> bool:
    """Whether the call lost a race and may simply be repeated on the same session."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _CONTENTION


def has_waited(error: BaseException) -> bool:
    """Whether the call has used up the time that one call may take. Repeating it at once would take it again, while
    finishes and children wait; the session is well."""
    return isinstance(error, psycopg.Error) and error.sqlstate in _WAITED


def is_infrastructure(error: BaseException) -> bool:
    """Whether `error` is about reaching or running the database rather than about the call.

    A driver error without SQLSTATE (connection refused, too many clients, closed connection) counts; bad values, which
    also come without one (a NUL in text), do not.
    """
    if not isinstance(error, psycopg.Error):
        return False
    state = error.sqlstate
    if state is None:
        return isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError))
    return state[:2] in _INFRASTRUCTURE_CLASSES or state in _INFRASTRUCTURE_STATES


def may_pass(error: BaseException) -> bool:
    """Whether the server failed at the call for a reason that is not in its values, so that the same call may succeed
    later: a right or a function that is missing in the middle of a deploy, an internal error."""
    if not isinstance(error, psycopg.Error) or error.sqlstate is None:
        return False
    return not isinstance(error, (psycopg.DataError, psycopg.IntegrityError))


def engine_error(error: psycopg.Error) -> StoplineError | None:
    """The engine's own refusals (SQLSTATE SL0xx) as exceptions; None for every other error."""
    message = error.diag.message_primary or str(error)
    hint = error.diag.message_hint
    text = f"{message}. {hint}" if hint else message
    match error.sqlstate:
        case "SL001":
            field, _, rule = text.partition(": ")
            return InvalidInput(field, rule)
        case "SL002":
            return Refused(text)
        case "SL003":
            return LeaseLost(text)
    if isinstance(error, pg.CheckViolation) and error.diag.constraint_name:
        return Refused(text)
    return None
