"""One call of a kind's `run`, in whatever process it happens, and how it ended."""

import inspect
import json
from dataclasses import dataclass

from stopline.classify import classify
from stopline.errors import InfrastructureError
from stopline.failure import Failure
from stopline.payload import encode_result
from stopline.states import Outcome
from stopline.worker.job import Job, StepLimit
from stopline.worker.loading import KindCode

_PLAIN = (dict, list, str, int, float, bool)


@dataclass(frozen=True, slots=True)
class Ending:
    """A success with its result (JSON text, or None for a handler that returned None), or a failure.

    `queue_lost` says that the queue's own database could not be reached in a call that the handler made.
    """

    result: str | None = None
    failure: Failure | None = None
    queue_lost: bool = False


_DONE = Ending()


def run_attempt(code: KindCode, job: Job, idempotent: bool) -> Ending:
    """Runs the job. Whatever the handler raises, SystemExit and KeyboardInterrupt included, is a counted failure."""
    try:
        value = code.run(job)
        if value is None:
            return _DONE
        if not isinstance(value, _PLAIN):
            refuse_unstarted("run", value)
    except StepLimit as error:
        failure = classify(error, idempotent=idempotent)
        return Ending(failure=_with_reason(failure, error))
    except BaseException as error:
        # Not isinstance: it asks the exception, which may answer with another one.
        lost = issubclass(type(error), InfrastructureError)
        return Ending(failure=classify(error, idempotent=idempotent, classes=code.classes), queue_lost=lost)
    return Ending(result=_text(value))


def _text(value: object) -> str:
    """The work is done by now: whatever its result does while it is written down, the attempt succeeded."""
    try:
        return encode_result(value)
    except BaseException as error:
        return json.dumps({"stopline": "result not stored", "why": type(error).__name__})


def refuse_unstarted(function: str, value: object) -> None:
    """Raises TypeError for a coroutine or generator: it has not run, and would pass for something that was done."""
    if inspect.isawaitable(value) or inspect.isgenerator(value) or inspect.isasyncgen(value):
        close = getattr(value, "close", None)
        if callable(close):
            close()
        raise TypeError(f"{function}(job) returned a {type(value).__name__}, which has not run: return a plain value")


def _with_reason(failure: Failure, error: StepLimit) -> Failure:
    return Failure(Outcome.PERMANENT, failure.error_class, failure.error, stop_reason=error.stop_reason)
