"""What a person's action led to, and what happens next: one sentence or two after each. Pure."""

from stopline.states import OperatorAnswer, State
from stopline.store.operate import JobChange, KindChange
from stopline_cli.words import moment

_ONLY_REPLAY = "It will not run again unless somebody replays it."


def cancelled(change: JobChange) -> str:
    """After `cancel`."""
    if change.answer is OperatorAnswer.DONE:
        return f"cancelled. {_ONLY_REPLAY}"
    if change.state is State.CLAIMED:
        said = "cancel requested" if change.answer is OperatorAnswer.REQUESTED else "a cancel was requested before"
        return (
            f"{said}: the running attempt decides. If it succeeds the job stays succeeded, if it fails the job is "
            "cancelled, and if nobody knows how it ended the job becomes uncertain."
        )
    return f"already cancelled; nothing was added. {_ONLY_REPLAY}"


def replayed(change: JobChange) -> str:
    """After `replay`."""
    if change.answer is OperatorAnswer.DONE:
        return "replayed: a new round is open and due now; a poller claims it as soon as its kind may run."
    if change.answer is OperatorAnswer.ALREADY_DONE and change.state in (State.PENDING, State.CLAIMED):
        return f"already replayed: its new round is {change.state}; nothing was added."
    said = "replay requested" if change.answer is OperatorAnswer.REQUESTED else "a replay was requested before"
    return (
        f"{said}: the receiver is asked first, by the kind's poller; the job stays {change.state} meanwhile. If the "
        "effect exists the job ends as succeeded without running again; if it does not, the new round opens; if the "
        "receiver cannot say, the request is closed and a person decides."
    )


def reconciled(change: JobChange) -> str:
    """After `reconcile`."""
    if change.answer is OperatorAnswer.ALREADY_DONE:
        return f"already reconciled so; it is {_ended(change)} and nothing was added."
    match change.state:
        case State.SUCCEEDED:
            return "succeeded: its effect exists, so it is not run again. Its key is free."
        case State.PENDING:
            return "pending: its effect does not exist, so it is tried again after a backoff, within what is left."
        case State.CANCELLED:
            return f"cancelled: its effect does not exist, and a cancel had been requested. {_ONLY_REPLAY}"
        case _:
            return f"{_ended(change)}: its effect does not exist, and no limit leaves another attempt. {_ONLY_REPLAY}"


def acknowledged(change: JobChange) -> str:
    """After `ack`."""
    said = "already acknowledged" if change.answer is OperatorAnswer.ALREADY_DONE else "acknowledged"
    return (
        f"{said}: seen, and nothing else. It stays {_ended(change)}, and a key that it holds stays held. {_ONLY_REPLAY}"
    )


def key_released(change: JobChange) -> str:
    """After `release-key`."""
    if change.answer is OperatorAnswer.ALREADY_DONE:
        return "it holds no key; nothing was added."
    return "its key is free: new work may have it, and a source that still returns it enqueues it on its next tick."


def paused(change: KindChange) -> str:
    """After `pause`."""
    said = "already paused" if change.answer is OperatorAnswer.ALREADY_DONE else "paused"
    until = f"until {moment(change.paused_until)}" if change.paused_until else "until somebody resumes it"
    return f"{said} {until}. No attempt starts; attempts that run go on to their end, and deadlines hold."


def resumed(change: KindChange) -> str:
    """After `resume`."""
    if change.answer is OperatorAnswer.ALREADY_DONE:
        return "was not paused; nothing was added."
    return "resumed: the next poll claims what is due. Failures count afresh for its breaker."


def _ended(change: JobChange) -> str:
    return change.state if change.stop_reason is None else f"{change.state} ({change.stop_reason})"
