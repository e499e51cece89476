"""One call of a kind's `reconcile`, in whatever process it happens, and what it answered."""

from stopline.errortext import describe
from stopline.failure import Failure
from stopline.states import Outcome, ReceiverAnswer
from stopline.worker.attempt import Ending, refuse_unstarted
from stopline.worker.job import Job
from stopline.worker.loading import KindCode

_WORDS = frozenset(ReceiverAnswer)
_SHOWN = 200


def run_check(code: KindCode, job: Job) -> Ending:
    """Asks. The ending's result is one of the three words; whatever else the hook returns or raises is a failure."""
    try:
        if code.reconcile is None:
            raise TypeError(f"kind {code.kind} has no reconcile(job)")
        value = code.reconcile(job)
        if isinstance(value, str) and value in _WORDS:
            return Ending(result=str(ReceiverAnswer(value)))
        refuse_unstarted("reconcile", value)
        raise TypeError(f"reconcile(job) returned {_shown(value)}, which is none of {', '.join(ReceiverAnswer)}")
    except BaseException as error:
        return Ending(failure=Failure(Outcome.TRANSIENT, *describe(error)))


def answer_of(ending: Ending) -> tuple[ReceiverAnswer, str]:
    """The answer with its detail. No answer is ever read into a check that ended in another way than by its word."""
    if ending.failure is not None:
        return ReceiverAnswer.UNKNOWN, ending.failure.error
    if ending.result not in _WORDS:
        return ReceiverAnswer.UNKNOWN, f"reconcile(job) ended with {_shown(ending.result)}, which is no answer"
    return ReceiverAnswer(ending.result), f"reconcile(job) returned {ending.result}"


def _shown(value: object) -> str:
    try:
        return repr(value)[:_SHOWN]
    except Exception:
        return f"a {type(value).__name__}"
