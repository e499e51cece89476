import socket
import ssl
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import botocore.config
import botocore.exceptions
import botocore.session
import psycopg
import pytest
import urllib3

import stopline.classify
from stopline.classify import classify
from stopline.errors import LeaseLost, Permanent, Transient, Uncertain
from stopline.http import HttpError, raise_for_status
from stopline.known_errors import AWS_CODES, STATUSES, TABLE, Verdict
from stopline.states import Outcome, StopReason

BROKEN_SERVERS = ("reset", "close", "hang", "partial")


@contextmanager
def server(answer: Any) -> Iterator[str]:
    """A loopback server that reads one request and then resets, closes, hangs, breaks off, or sends the bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        held = []

        def serve() -> None:
            connection, _ = listener.accept()
            connection.recv(65_536)
            if answer == "hang":
                held.append(connection)
                return
            if answer == "reset":
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            elif answer == "partial":
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n{")
            elif answer != "close":
                connection.sendall(answer)
            connection.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            thread.join()
            for connection in held:
                connection.close()


def http_answer(status: int, body: bytes = b"{}", headers: str = "") -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\nConnection: close\r\n{headers}\r\n".encode() + body


def bedrock_error(url: str) -> BaseException:
    session = botocore.session.Session()
    session.set_credentials("key", "secret")
    config = botocore.config.Config(retries={"total_max_attempts": 1}, read_timeout=0.2, connect_timeout=0.5)
    client = session.create_client("bedrock-runtime", region_name="eu-west-1", endpoint_url=url, config=config)
    with pytest.raises((botocore.exceptions.BotoCoreError, botocore.exceptions.ClientError)) as caught:
        client.converse(modelId="m", messages=[])
    error: BaseException = caught.value
    return error


def urllib3_error(url: str, *, retries: Any = False) -> BaseException:
    wait = urllib3.Timeout(connect=0.5, read=0.2)
    expected = (urllib3.exceptions.HTTPError, HttpError)
    with urllib3.PoolManager(retries=retries) as pool, pytest.raises(expected) as caught:
        raise_for_status(pool.request("POST", url, body=b"{}", timeout=wait))
    return caught.value


def urllib3_error_after_no_retries(url: str) -> BaseException:
    return urllib3_error(url, retries=urllib3.Retry(total=0))


def outcomes(exc: BaseException) -> tuple[Outcome, Outcome]:
    """The outcome for a kind that may repeat its work and for one that may not."""
    return classify(exc, idempotent=True).outcome, classify(exc, idempotent=False).outcome


AGAIN = (Outcome.TRANSIENT, Outcome.TRANSIENT)
NEVER = (Outcome.PERMANENT, Outcome.PERMANENT)
LOST = (Outcome.TRANSIENT, Outcome.UNCERTAIN)


@pytest.mark.parametrize("fault", BROKEN_SERVERS)
@pytest.mark.parametrize("retries", [False, urllib3.Retry(total=0), None])
def test_a_lost_answer_is_uncertain_unless_repeating_is_harmless(fault: str, retries: Any) -> None:
    with server(fault) as url:
        assert outcomes(urllib3_error(url, retries=retries)) == LOST


@pytest.mark.parametrize("fault", ["reset", "close", "hang"])
def test_a_lost_answer_of_the_aws_sdk_is_uncertain_unless_repeating_is_harmless(fault: str) -> None:
    with server(fault) as url:
        assert outcomes(bedrock_error(url)) == LOST


@pytest.mark.parametrize("url", ["http://127.0.0.1:1", "http://stopline.invalid"])
@pytest.mark.parametrize("raise_from", [bedrock_error, urllib3_error, urllib3_error_after_no_retries])
def test_a_connection_that_never_came_about_sent_nothing(url: str, raise_from: Any) -> None:
    assert outcomes(raise_from(url)) == AGAIN


@pytest.mark.parametrize(
    ("status", "expected"),
    [(400, NEVER), (401, AGAIN), (403, AGAIN), (404, NEVER), (408, AGAIN), (409, NEVER), (422, NEVER), (425, AGAIN),
     (429, AGAIN), (500, LOST), (501, AGAIN), (502, LOST), (503, AGAIN), (504, LOST), (302, AGAIN)],
)  # fmt: skip
def test_a_status_decides(status: int, expected: tuple[Outcome, Outcome]) -> None:
    """FI-15: a revoked token or a busy receiver keeps the job, an answer that refuses the work ends it at once."""
    error = HttpError(status, "why")
    assert outcomes(error) == expected
    failure = classify(error, idempotent=True)
    assert failure.error_class == f"HTTP {status}"
    assert failure.error.startswith(f"stopline.http.HttpError: HTTP {status}: why")


def test_the_pause_that_a_receiver_asks_for_is_kept() -> None:
    with server(http_answer(503, headers="Retry-After: 7\r\n")) as url:
        assert classify(urllib3_error(url), idempotent=False).retry_after == 7.0
    headers = "Retry-After: 9\r\nx-amzn-ErrorType: ThrottlingException\r\n"
    with server(http_answer(429, b'{"message": "slow"}', headers)) as url:
        failure = classify(bedrock_error(url), idempotent=False)
    assert failure.error_class == "ThrottlingException"
    assert (failure.outcome, failure.retry_after) == (Outcome.TRANSIENT, 9.0)
    assert classify(Transient("busy", retry_after=3), idempotent=True).retry_after == 3.0
    assert classify(Transient("busy", retry_after=float("nan")), idempotent=True).retry_after is None


@pytest.mark.parametrize(
    ("status", "code", "expected"),
    [
        (429, "ThrottlingException", AGAIN),
        (400, "ThrottlingException", AGAIN),
        (400, "ServiceQuotaExceededException", AGAIN),
        (403, "AccessDeniedException", AGAIN),
        (400, "ExpiredTokenException", AGAIN),
        (408, "ModelTimeoutException", AGAIN),
        (424, "ModelErrorException", AGAIN),
        (429, "ModelNotReadyException", AGAIN),
        (503, "ServiceUnavailableException", AGAIN),
        (500, "InternalServerException", LOST),
        (400, "ValidationException", NEVER),
        (404, "ResourceNotFoundException", NEVER),
    ],
)
def test_every_error_of_converse_is_known(status: int, code: str, expected: tuple[Outcome, Outcome]) -> None:
    with server(http_answer(status, b'{"message": "why"}', f"x-amzn-ErrorType: {code}\r\n")) as url:
        error = bedrock_error(url)
    assert outcomes(error) == expected
    assert classify(error, idempotent=True).error_class == code


def test_an_answer_without_an_error_code_is_known_by_its_status() -> None:
    with server(http_answer(503, b"")) as url:
        assert classify(bedrock_error(url), idempotent=False).error_class == "HTTP 503"


def test_parameters_that_the_sdk_refuses_are_refused_again() -> None:
    session = botocore.session.Session()
    session.set_credentials("key", "secret")
    client = session.create_client("bedrock-runtime", region_name="eu-west-1")
    with pytest.raises(botocore.exceptions.ParamValidationError) as caught:
        client.converse(modelId="m", messages="no list")
    assert outcomes(caught.value) == NEVER


def test_missing_credentials_are_not_the_jobs_fault() -> None:
    assert outcomes(botocore.exceptions.NoCredentialsError()) == AGAIN


def test_a_refused_certificate_sends_nothing_and_a_broken_session_may_have() -> None:
    refused = urllib3.exceptions.SSLError(ssl.SSLCertVerificationError("self-signed"))
    broken = urllib3.exceptions.SSLError(ssl.SSLError("decryption failed"))
    assert outcomes(refused) == AGAIN
    assert outcomes(urllib3.exceptions.MaxRetryError(urllib3.HTTPSConnectionPool("x"), "/", refused)) == AGAIN
    assert outcomes(broken) == LOST
    assert outcomes(botocore.exceptions.SSLError(endpoint_url="https://x", error=refused)) == AGAIN
    assert outcomes(botocore.exceptions.HTTPClientError(error=ValueError("odd"))) == LOST


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (psycopg.errors.SerializationFailure("retry"), AGAIN),
        (psycopg.errors.UniqueViolation("raced"), AGAIN),
        (psycopg.errors.UndefinedTable("deploy first"), AGAIN),
        (psycopg.errors.ReadOnlySqlTransaction("failed over"), AGAIN),
        (psycopg.errors.AdminShutdown("bye"), AGAIN),
        (psycopg.errors.CheckViolation("amount > 0"), NEVER),
        (psycopg.errors.NumericValueOutOfRange("too big"), NEVER),
        (psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes"), NEVER),
        (psycopg.errors.TransactionResolutionUnknown("maybe"), LOST),
        (psycopg.OperationalError("server closed the connection unexpectedly"), LOST),
    ],
)
def test_errors_of_the_applications_database_are_known(error: BaseException, expected: tuple[Outcome, Outcome]) -> None:
    assert outcomes(error) == expected


@pytest.mark.parametrize("host", ["127.0.0.1", "stopline.invalid"])
def test_a_database_that_was_not_reached_changed_nothing(host: str) -> None:
    with pytest.raises(psycopg.OperationalError) as caught:
        psycopg.connect(host=host, port=1, connect_timeout=1)
    assert outcomes(caught.value) == AGAIN


def test_what_a_handler_says_is_taken_as_said() -> None:
    for idempotent in (True, False):
        assert classify(Transient("x"), idempotent=idempotent).outcome is Outcome.TRANSIENT
        assert classify(Uncertain("x"), idempotent=idempotent).outcome is Outcome.UNCERTAIN
        permanent = classify(Permanent("x"), idempotent=idempotent)
        assert (permanent.outcome, permanent.stop_reason) == (Outcome.PERMANENT, StopReason.PERMANENT_FAILURE)
        assert (permanent.error_class, permanent.error) == ("Permanent", "stopline.errors.Permanent: x")


ANYTHING_ELSE = (
    SystemExit(0),
    KeyboardInterrupt(),
    GeneratorExit(),
    RecursionError("deep"),
    MemoryError(),
    LeaseLost("old"),
    AssertionError(),
    ValueError("x"),
    Exception(),
)


@pytest.mark.parametrize("error", ANYTHING_ELSE)
def test_anything_else_is_a_counted_failure(error: BaseException) -> None:
    """FI-07: sys.exit(0) is not a success, and no exception escapes."""
    assert outcomes(error) == AGAIN
    failure = classify(error, idempotent=False)
    assert failure.error_class == type(error).__name__
    assert failure.error


def test_wrapping_a_lost_answer_does_not_make_it_known() -> None:
    with server("hang") as url:
        lost = urllib3_error(url)
    wrapped = RuntimeError("export failed")
    wrapped.__cause__ = ValueError("inner")
    wrapped.__cause__.__context__ = lost
    assert outcomes(wrapped) == LOST
    said = RuntimeError("checked: nothing arrived")
    said.__cause__ = Transient("not applied")
    said.__cause__.__cause__ = lost
    assert outcomes(said) == AGAIN
    unsure = RuntimeError("no idea")
    unsure.__cause__ = Uncertain("maybe")
    assert outcomes(unsure) == LOST


def test_an_exception_that_defeats_its_own_reading_is_still_a_failure() -> None:
    """FI-01: neither a raising __str__ nor raising attributes lose the outcome."""

    class Hostile(urllib3.exceptions.HTTPError):
        def __str__(self) -> str:
            raise RuntimeError

        def __getattribute__(self, name: str) -> Any:
            raise RuntimeError(name)

    failure = classify(Hostile("x"), idempotent=True)
    assert failure.outcome is Outcome.TRANSIENT
    assert failure.error


@pytest.mark.parametrize("response", [None, {}, {"Error": "x"}, {"Error": {"Code": 7}, "ResponseMetadata": []}])
def test_answers_of_odd_shapes_are_still_failures(response: Any) -> None:
    error = botocore.exceptions.ClientError({}, "Converse")
    error.response = response
    failure = classify(error, idempotent=False)
    assert (failure.outcome, failure.error_class) == (Outcome.TRANSIENT, "ClientError")


def test_every_row_names_a_class_that_exists_and_says_why() -> None:
    modules = {
        "stopline": ["stopline.http"],
        "botocore": ["botocore.exceptions", "botocore.parsers"],
        "urllib3": ["urllib3.exceptions"],
        "urllib": ["urllib.error"],
        "http": ["http.client"],
        "psycopg": ["psycopg", "psycopg.errors"],
    }
    for row in TABLE:
        package, _, name = row.name.partition(".")
        found = [getattr(__import__(module, fromlist=["x"]), name, None) for module in modules.get(package, [package])]
        assert any(isinstance(entry, type) and issubclass(entry, BaseException) for entry in found), row.name
        assert row.why
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert all(why and isinstance(verdict, Verdict) for verdict, why in [*STATUSES.values(), *AWS_CODES.values()])


def test_no_driver_and_no_sdk_is_imported_to_classify() -> None:
    code = "import sys, stopline.classify; print({'botocore', 'boto3', 'urllib3', 'psycopg'} & set(sys.modules))"
    path = str(Path(stopline.classify.__file__).parents[1])
    answer = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
    assert answer.stdout.strip() == "set()"
