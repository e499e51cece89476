"""The closed lists of words that a row may hold, each written once. `tests/sql` holds the database to them."""

from enum import StrEnum


class State(StrEnum):
    """Where a job is."""

    PENDING = "pending"
    CLAIMED = "claimed"
    UNCERTAIN = "uncertain"
    SUCCEEDED = "succeeded"
    ABANDONED = "abandoned"
    CANCELLED = "cancelled"


TERMINAL = frozenset({State.SUCCEEDED, State.ABANDONED, State.CANCELLED})


class Outcome(StrEnum):
    """How one attempt ended."""

    SUCCEEDED = "succeeded"
    TRANSIENT = "transient"
    PERMANENT = "permanent"
    UNCERTAIN = "uncertain"
    TIMEOUT = "timeout"
    CRASHED = "crashed"
    RELEASED = "released"


class StopReason(StrEnum):
    """Why a job ended."""

    COMPLETED = "completed"
    ATTEMPTS_EXHAUSTED = "attempts_exhausted"
    CRASHES_EXHAUSTED = "crashes_exhausted"
    PERMANENT_FAILURE = "permanent_failure"
    ELAPSED_LIMIT = "elapsed_limit"
    DEADLINE_PASSED = "deadline_passed"
    BUDGET_EXHAUSTED = "budget_exhausted"
    STEP_LIMIT = "step_limit"
    REOPEN_LIMIT = "reopen_limit"
    CANCELLED = "cancelled"
    UNREADABLE = "unreadable"


class DueRule(StrEnum):
    """What set a job's due time."""

    ENQUEUE = "enqueue"
    BACKOFF = "backoff"
    RETRY_AFTER = "retry_after"
    BUDGET = "budget"
    BREAKER = "breaker"
    CHECK = "check"


class ClaimStatus(StrEnum):
    """What a tick or a claim found."""

    OK = "ok"
    EMPTY = "empty"
    FULL = "full"
    PAUSED = "paused"
    BUDGET = "budget"
    FOREIGN = "foreign"


class ReceiverAnswer(StrEnum):
    """What a receiver says about an effect, by `reconcile(job)`: it exists, it does not, or nobody can tell."""

    APPLIED = "applied"
    NOT_APPLIED = "not_applied"
    UNKNOWN = "unknown"


class RecordAnswer(StrEnum):
    """What became of a receiver's answer: `recorded` was acted upon, `already_done` had been, `stale` stands with its
    question and changed nothing, because the job has moved on."""

    RECORDED = "recorded"
    ALREADY_DONE = "already_done"
    STALE = "stale"


class EnqueueAnswer(StrEnum):
    """What became of one enqueued item."""

    CREATED = "created"
    OPEN = "open"
    HELD = "held"
    CONFLICT = "conflict"
    INVALID = "invalid"


class FinishAnswer(StrEnum):
    """What became of a finish: `recorded` changed the job, `already` had been recorded by this very attempt,
    `late` changed no state and stands on the attempt as its late outcome, `unknown` names no attempt of the job."""

    RECORDED = "recorded"
    ALREADY = "already"
    LATE = "late"
    UNKNOWN = "unknown"


class OperatorAnswer(StrEnum):
    """What became of a person's action: `done` changed the job or kind, `requested` leaves the decision to the running
    attempt or to the receiver, `already_done` found it so and added nothing."""

    DONE = "done"
    REQUESTED = "requested"
    ALREADY_DONE = "already_done"
