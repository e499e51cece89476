"""The errors whose meaning for a retry is known, each with its reason.

Classes are named by top package and class, so that neither botocore nor urllib3 nor psycopg is imported for it. What
botocore 1.44 and urllib3 2.8 raise for a connection that is refused, reset, cut or silent was tried, not assumed.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple


class Verdict(Enum):
    """What an error means for the next attempt."""

    RETRY = "the effect did not happen, or repeating is what the receiver expects"
    NEVER = "the same work is refused again"
    LOST = "it was sent and the answer was lost: repeatable for idempotent kinds, unknown for others"
    STATUS = "the HTTP status decides"
    INNER = "the error inside it decides; lost if that one is unknown"
    CONNECT = "a retry if the connection never came about, lost if it broke"


class Row(NamedTuple):
    """One known class: top package and class name, what it means, and why in a line."""

    name: str
    verdict: Verdict
    why: str


TABLE = (
    Row("stopline.HttpError", Verdict.STATUS, "the receiver answered"),
    Row("botocore.ReadTimeoutError", Verdict.LOST, "the request was on the wire when waiting ended"),
    Row("botocore.ConnectionClosedError", Verdict.LOST, "the connection broke before a valid answer"),
    Row("botocore.ResponseStreamingError", Verdict.LOST, "the answer broke off while it was read"),
    Row("botocore.IncompleteReadError", Verdict.LOST, "the answer was shorter than announced"),
    Row("botocore.ChecksumError", Verdict.LOST, "the answer arrived damaged"),
    Row("botocore.FlexibleChecksumError", Verdict.LOST, "the answer arrived damaged"),
    Row("botocore.ResponseParserError", Verdict.LOST, "the answer could not be read"),
    Row("botocore.EventStreamError", Verdict.LOST, "the stream broke off after the answer had begun"),
    Row("botocore.EndpointConnectionError", Verdict.RETRY, "no connection, so nothing was sent"),
    Row("botocore.ConnectTimeoutError", Verdict.RETRY, "no connection, so nothing was sent"),
    Row("botocore.ProxyConnectionError", Verdict.RETRY, "the proxy was not reached, so nothing was sent"),
    Row("botocore.SSLError", Verdict.INNER, "a refused certificate sends nothing, a broken session may have"),
    Row("botocore.HTTPClientError", Verdict.INNER, "the transport failed in another way"),
    Row("botocore.ParamValidationError", Verdict.NEVER, "the SDK refuses these parameters before it sends"),
    Row("botocore.ClientError", Verdict.STATUS, "the service answered with an error code"),
    Row(
        "botocore.BotoCoreError",
        Verdict.RETRY,
        "credentials, region or configuration: nothing was sent, and it is not the job's fault",
    ),
    Row(
        "urllib3.MaxRetryError",
        Verdict.INNER,
        "urllib3 raises a lost answer of a POST itself; what it wraps is the last try",
    ),
    Row("urllib3.NewConnectionError", Verdict.RETRY, "no connection, so nothing was sent"),
    Row("urllib3.ConnectTimeoutError", Verdict.RETRY, "no connection, so nothing was sent"),
    Row("urllib3.ProxyError", Verdict.RETRY, "the proxy was not reached, so nothing was sent"),
    Row("urllib3.EmptyPoolError", Verdict.RETRY, "no connection was free, so nothing was sent"),
    Row("urllib3.ClosedPoolError", Verdict.RETRY, "the pool was closed, so nothing was sent"),
    Row("urllib3.LocationValueError", Verdict.RETRY, "the address is configuration, not the job; nothing was sent"),
    Row("urllib3.SSLError", Verdict.INNER, "a refused certificate sends nothing, a broken session may have"),
    Row("urllib3.HTTPError", Verdict.LOST, "read timeout, broken connection or unreadable answer"),
    Row("urllib.HTTPError", Verdict.STATUS, "the receiver answered"),
    Row("urllib.URLError", Verdict.INNER, "wraps the error of the socket"),
    Row("http.HTTPException", Verdict.LOST, "the connection broke while the answer was read"),
    Row("socket.gaierror", Verdict.RETRY, "the name was not resolved, so nothing was sent"),
    Row("ssl.SSLCertVerificationError", Verdict.RETRY, "the certificate was refused before anything was sent"),
    Row("ssl.SSLError", Verdict.LOST, "the session broke at an unknown point"),
    Row("builtins.ConnectionRefusedError", Verdict.RETRY, "no connection, so nothing was sent"),
    Row("builtins.ConnectionError", Verdict.LOST, "reset, aborted or broken pipe: the request may have arrived"),
    Row("builtins.TimeoutError", Verdict.LOST, "sockets raise it while connecting and while reading alike"),
    Row("psycopg.TransactionResolutionUnknown", Verdict.LOST, "the commit may have happened"),
    Row("psycopg.StatementCompletionUnknown", Verdict.LOST, "the statement may have happened"),
    Row("psycopg.ConnectionTimeout", Verdict.RETRY, "no connection, so nothing was sent"),
    Row(
        "psycopg.OperationalError",
        Verdict.CONNECT,
        "with a SQLSTATE the transaction was rolled back, without one the connection broke",
    ),
    Row("psycopg.CheckViolation", Verdict.NEVER, "the same values break the same rule"),
    Row("psycopg.NotNullViolation", Verdict.NEVER, "the same values break the same rule"),
    Row("psycopg.DataError", Verdict.NEVER, "the database cannot hold these values"),
    Row(
        "psycopg.Error",
        Verdict.RETRY,
        "rolled back; conflicts pass, and a missing table or right is the deploy's fault",
    ),
)

STATUSES: Mapping[int, tuple[Verdict, str]] = {
    401: (Verdict.RETRY, "a revoked token is not the job's fault, and would abandon every job at once"),
    403: (Verdict.RETRY, "a missing right is not the job's fault, and would abandon every job at once"),
    408: (Verdict.RETRY, "the receiver gave up waiting for the request"),
    425: (Verdict.RETRY, "the receiver asks to send it again later"),
    429: (Verdict.RETRY, "the receiver asks to slow down"),
    500: (Verdict.LOST, "the receiver failed at an unknown point"),
    502: (Verdict.LOST, "a gateway lost the receiver's answer"),
    504: (Verdict.LOST, "a gateway did not wait for the receiver's answer"),
}

AWS_CODES: Mapping[str, tuple[Verdict, str]] = {
    **dict.fromkeys(
        (
            "Throttling",
            "ThrottlingException",
            "ThrottledException",
            "RequestThrottled",
            "RequestThrottledException",
            "TooManyRequestsException",
            "RequestLimitExceeded",
            "BandwidthLimitExceeded",
            "ProvisionedThroughputExceededException",
            "LimitExceededException",
            "SlowDown",
            "EC2ThrottledException",
            "PriorRequestNotComplete",
            "TransactionInProgressException",
            "ServiceQuotaExceededException",
        ),
        (Verdict.RETRY, "the service refused it for load; some services say so with status 400"),
    ),
    **dict.fromkeys(
        (
            "ExpiredToken",
            "ExpiredTokenException",
            "RequestExpired",
            "InvalidClientTokenId",
            "UnrecognizedClientException",
            "InvalidSignatureException",
            "SignatureDoesNotMatch",
            "IncompleteSignature",
            "MissingAuthenticationToken",
            "RequestTimeTooSkewed",
            "AuthFailure",
            "AccessDenied",
            "AccessDeniedException",
        ),
        (Verdict.RETRY, "credentials are not the job's fault; some services say so with status 400"),
    ),
    "ModelErrorException": (Verdict.RETRY, "the model failed on this call (status 424), another call may not"),
    "ModelTimeoutException": (Verdict.RETRY, "the model took too long (status 408)"),
    "ModelNotReadyException": (Verdict.RETRY, "the model is still loading (status 429)"),
    "RequestTimeout": (Verdict.RETRY, "the service gave up waiting for the request; some say so with status 400"),
    "RequestTimeoutException": (
        Verdict.RETRY,
        "the service gave up waiting for the request; some say so with status 400",
    ),
}

VERDICTS: Mapping[str, Verdict] = {row.name: row.verdict for row in TABLE}
