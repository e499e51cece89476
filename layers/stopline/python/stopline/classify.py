"""Decides what an exception says about its attempt: try again, never again, or nobody knows."""

from stopline.errors import Permanent, StoplineError, Transient, Uncertain
from stopline.errortext import cause_of, class_name, describe
from stopline.failure import Failure
from stopline.http import HttpError, retry_after
from stopline.kind_classes import NONE, KindClasses
from stopline.known_errors import AWS_CODES, STATUSES, VERDICTS, Verdict
from stopline.states import Outcome

_CAUSES = 20


def classify(exc: BaseException, *, idempotent: bool, classes: KindClasses = NONE) -> Failure:
    """The failure that an attempt ended with. `idempotent` says whether repeating the kind's work is harmless,
    `classes` what the kind says about errors.

    What a handler raised on purpose is taken as said, then what the kind says, then the table. A lost answer is
    transient for idempotent kinds and uncertain for others, also when it is only the cause of another exception.
    Anything unknown is transient: the cap bounds it. Never raises.
    """
    try:
        return _classify(exc, idempotent=idempotent, classes=classes)
    except BaseException:  # an exception that defeats its own reading is still an attempt that must be recorded
        name = class_name(exc)
        return Failure(Outcome.TRANSIENT, name, f"{name} (its details could not be read)")


def _classify(exc: BaseException, *, idempotent: bool, classes: KindClasses) -> Failure:
    name, text = describe(exc)
    if isinstance(exc, Transient):
        return Failure(Outcome.TRANSIENT, name, text, retry_after=exc.retry_after)
    if isinstance(exc, Permanent):
        return Failure(Outcome.PERMANENT, name, text)
    if isinstance(exc, Uncertain):
        return Failure(Outcome.UNCERTAIN, name, text)
    outcome = _said_by_kind(exc, classes)
    verdict = None if outcome else _verdict(exc)
    # Also where the kind has spoken of the class: it did not say that what this one wraps had not arrived.
    if verdict is None and not idempotent and _verdict_of_cause(exc) is Verdict.LOST:
        outcome = Outcome.UNCERTAIN
    outcome = outcome or _outcome(verdict, idempotent=idempotent)
    return Failure(outcome, _error_class(exc, name), text, retry_after=_delay(exc))


def _said_by_kind(exc: BaseException, classes: KindClasses) -> Outcome | None:
    """What the kind's CLASSES say: of an answer by its error code and status, of others by the nearest class that
    either CLASSES or the table knows. The queue's own errors are not the kind's to judge."""
    if classes is NONE or issubclass(type(exc), StoplineError):
        return None
    if _listed(exc) is Verdict.STATUS:
        status = _status(exc)
        found = classes.codes.get(_aws_code(exc)) or (None if status is None else classes.statuses.get(status))
        if found is not None:
            return found
    for ancestor in type(exc).__mro__:
        if ancestor in classes.exceptions:
            return classes.exceptions[ancestor]
        if _name(ancestor) in VERDICTS:
            return None
    return None


def _outcome(verdict: Verdict | None, *, idempotent: bool) -> Outcome:
    if verdict is Verdict.NEVER:
        return Outcome.PERMANENT
    if verdict is Verdict.LOST and not idempotent:
        return Outcome.UNCERTAIN
    return Outcome.TRANSIENT


def _verdict(exc: BaseException) -> Verdict | None:
    """RETRY, NEVER or LOST for a known class, None for an unknown one."""
    verdict = _listed(exc)
    if verdict is Verdict.STATUS:
        return _verdict_of_answer(exc)
    if verdict is Verdict.INNER:
        inner = _inner(exc)
        return (_verdict(inner) if inner is not None else None) or Verdict.LOST
    if verdict is Verdict.CONNECT:
        never_connected = (
            getattr(exc, "sqlstate", None) or getattr(exc, "pgconn", None) or "failed to resolve host" in str(exc)
        )
        return Verdict.RETRY if never_connected else Verdict.LOST
    return verdict


def _listed(exc: BaseException) -> Verdict | None:
    for ancestor in type(exc).__mro__:
        if _name(ancestor) in VERDICTS:
            return VERDICTS[_name(ancestor)]
    return None


def _name(kind: type) -> str:
    """A class as the table has it: top package and class name."""
    return f"{str(kind.__module__).partition('.')[0]}.{kind.__name__}"


def _verdict_of_cause(exc: BaseException) -> Verdict | None:
    """LOST if the nearest known cause is a lost answer: wrapping an error does not make the effect known."""
    cause = cause_of(exc)
    for _ in range(_CAUSES):
        if cause is None or isinstance(cause, Transient | Permanent):
            return None
        if isinstance(cause, Uncertain):
            return Verdict.LOST
        verdict = _verdict(cause)
        if verdict is not None:
            return verdict if verdict is Verdict.LOST else None
        cause = cause_of(cause)
    return None


def _verdict_of_answer(exc: BaseException) -> Verdict:
    code = _aws_code(exc)
    if code in AWS_CODES:
        return AWS_CODES[code][0]
    return verdict_of_status(_status(exc))


def verdict_of_status(status: int | None) -> Verdict:
    """What an HTTP status means: listed ones as listed, other client errors never, all else again."""
    if status is None:
        return Verdict.RETRY
    if status in STATUSES:
        return STATUSES[status][0]
    return Verdict.NEVER if 400 <= status < 500 else Verdict.RETRY


def _inner(exc: BaseException) -> BaseException | None:
    """The error that a wrapper of urllib3, urllib or botocore holds."""
    kwargs = getattr(exc, "kwargs", None)
    held = (
        getattr(exc, "reason", None),
        kwargs.get("error") if isinstance(kwargs, dict) else None,
        *exc.args[:3],
        cause_of(exc),
    )
    return next((inner for inner in held if isinstance(inner, BaseException) and inner is not exc), None)


def _status(exc: BaseException) -> int | None:
    for candidate in (getattr(exc, "status", None), getattr(exc, "code", None), _metadata(exc).get("HTTPStatusCode")):
        if isinstance(candidate, int):
            return candidate
    return None


def _aws_code(exc: BaseException) -> str:
    response = getattr(exc, "response", None)
    error = response.get("Error") if isinstance(response, dict) else None
    code = error.get("Code") if isinstance(error, dict) else None
    return code if isinstance(code, str) else ""


def _metadata(exc: BaseException) -> dict[str, object]:
    response = getattr(exc, "response", None)
    metadata = response.get("ResponseMetadata") if isinstance(response, dict) else None
    return metadata if isinstance(metadata, dict) else {}


def _error_class(exc: BaseException, name: str) -> str:
    """The AWS error code or the HTTP status where there is one: more telling than `ClientError` or `HttpError`."""
    if _listed(exc) is not Verdict.STATUS:
        return name
    code = _aws_code(exc)
    if code and not code.isdigit():
        return code
    status = _status(exc)
    return f"HTTP {status}" if status is not None else name


def _delay(exc: BaseException) -> float | None:
    if isinstance(exc, HttpError):
        return exc.retry_after
    headers = _metadata(exc).get("HTTPHeaders") or getattr(exc, "headers", None)
    items = getattr(headers, "items", None)
    return retry_after(dict(items())) if callable(items) else None
