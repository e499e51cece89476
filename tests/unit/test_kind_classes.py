"""What a kind says of errors in CLASSES, and what it cannot say."""

from typing import Any

import botocore.exceptions
import pytest
import urllib3

from stopline.classify import classify
from stopline.errors import InfrastructureError, InvalidInput, LeaseLost, Permanent, Transient, Uncertain
from stopline.http import HttpError
from stopline.kind_classes import read_classes
from stopline.states import Outcome, StopReason


class LedgerError(Exception):
    pass


class LedgerLocked(LedgerError):
    pass


def outcome(exc: BaseException, classes: object, *, idempotent: bool = True) -> Outcome:
    return classify(exc, idempotent=idempotent, classes=read_classes(classes)).outcome


def aws_error(code: str, status: int) -> BaseException:
    response = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error: BaseException = botocore.exceptions.ClientError(response, "Post")
    return error


def caused_by(exc: BaseException, cause: BaseException) -> BaseException:
    exc.__cause__ = cause
    return exc


@pytest.mark.parametrize(
    ("exc", "classes", "expected"),
    [
        (LedgerError(), {LedgerError: "permanent"}, Outcome.PERMANENT),
        (LedgerLocked(), {LedgerError: "permanent"}, Outcome.PERMANENT),
        (LedgerLocked(), {LedgerError: "permanent", LedgerLocked: "transient"}, Outcome.TRANSIENT),
        (LedgerLocked(), {LedgerError: "uncertain"}, Outcome.UNCERTAIN),
        (LedgerError(), {LedgerLocked: "permanent"}, Outcome.TRANSIENT),
        (HttpError(409), {409: "transient"}, Outcome.TRANSIENT),
        (HttpError(404), {409: "transient"}, Outcome.PERMANENT),
        (HttpError(401), {401: "permanent"}, Outcome.PERMANENT),
        (HttpError(409), {409: "transient", HttpError: "permanent"}, Outcome.TRANSIENT),
        (HttpError(503), {HttpError: "permanent"}, Outcome.PERMANENT),
        (aws_error("ConflictException", 409), {"ConflictException": "transient"}, Outcome.TRANSIENT),
        (aws_error("ConflictException", 409), {409: "permanent", "ConflictException": "transient"}, Outcome.TRANSIENT),
        (aws_error("ConflictException", 409), {409: "transient"}, Outcome.TRANSIENT),
        (RuntimeError("x"), {Exception: "permanent"}, Outcome.PERMANENT),
        (HttpError(401), {Exception: "permanent"}, Outcome.TRANSIENT),
        (TimeoutError(), {Exception: "permanent"}, Outcome.TRANSIENT),
        (SystemExit(0), {Exception: "permanent"}, Outcome.TRANSIENT),
    ],
)
def test_the_nearest_word_about_an_error_decides(
    exc: BaseException, classes: dict[Any, str], expected: Outcome
) -> None:
    """FI-15: a kind that knows its receiver's 409 or 401 better says so, and a broad word does not hide the table."""
    assert outcome(exc, classes) is expected


def test_permanent_by_the_kinds_word_has_its_stop_reason_and_keeps_name_and_pause() -> None:
    failure = classify(
        HttpError(409, "closing", retry_after=7), idempotent=True, classes=read_classes({409: "permanent"})
    )
    assert (failure.stop_reason, failure.error_class, failure.retry_after) == (
        StopReason.PERMANENT_FAILURE,
        "HTTP 409",
        7,
    )


@pytest.mark.parametrize("said", [Transient("x"), Permanent("x"), Uncertain("x")])
def test_what_a_handler_raises_on_purpose_is_not_overruled(said: BaseException) -> None:
    for word in ("transient", "permanent", "uncertain"):
        assert outcome(said, {Exception: word}) == type(said).__name__.lower()


@pytest.mark.parametrize("own", [InfrastructureError("away"), LeaseLost("old")])
def test_the_queues_own_errors_are_not_the_kinds_to_judge(own: BaseException) -> None:
    assert outcome(own, {Exception: "permanent", BaseException: "permanent"}) is Outcome.TRANSIENT


@pytest.mark.parametrize("word", ["transient", "permanent"])
def test_no_word_makes_a_retry_of_a_wrapped_lost_answer_where_repeating_does_harm(word: str) -> None:
    lost = urllib3.exceptions.ProtocolError("connection broken")
    wrapped = caused_by(LedgerError("export failed"), lost)
    assert outcome(wrapped, {LedgerError: word}, idempotent=False) is Outcome.UNCERTAIN
    assert outcome(wrapped, {LedgerError: word}) == word
    assert outcome(lost, {urllib3.exceptions.ProtocolError: word}, idempotent=False) == word


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ([], "CLASSES: must be a dict, not a list"),
        (
            {LedgerError: "again"},
            r"CLASSES\[LedgerError\]: must be one of transient, permanent, uncertain, not 'again'",
        ),
        ({LedgerError: Outcome.CRASHED}, "must be one of transient, permanent, uncertain"),
        ({LedgerError: True}, "must be one of transient, permanent, uncertain, not True"),
        ({200: "transient"}, r"CLASSES\[200\]: must be an exception class, an HTTP status from 400 to 599 or an AWS"),
        ({True: "transient"}, r"CLASSES\[True\]: must be an exception class"),
        ({"": "transient"}, "must be an exception class"),
        ({int: "transient"}, r"CLASSES\[int\]: must be an exception class"),
        ({LedgerError("one"): "transient"}, "must be an exception class"),
        ({Transient: "permanent"}, r"CLASSES\[Transient\]: is Stopline's own"),
        ({LeaseLost: "permanent"}, r"CLASSES\[LeaseLost\]: is Stopline's own"),
    ],
)
def test_a_wrong_entry_is_named_with_the_rule(value: object, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        read_classes(value)


def test_hostile_exceptions_are_still_classified() -> None:
    class Hostile(Exception):
        @property
        def status(self) -> int:
            raise RuntimeError

        def __str__(self) -> str:
            raise RuntimeError

    assert outcome(Hostile(), {Hostile: "permanent", 409: "permanent"}) is Outcome.PERMANENT
