"""HTTP answers that are not success, as errors that `classify` knows how to read."""

import email.utils
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Protocol

from stopline.failure import sane_delay

_BODY_CHARS = 2000
_SUCCESS = range(200, 300)
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{1,9})?", re.ASCII)


class Response(Protocol):
    """The part of a urllib3 response that is read here."""

    @property
    def status(self) -> int: ...
    @property
    def data(self) -> bytes: ...
    @property
    def headers(self) -> Mapping[str, str]: ...


class HttpError(Exception):
    """The receiver answered with a status other than success. `retry_after` is in seconds, if it asked for a pause."""

    def __init__(self, status: int, body: str | bytes = "", retry_after: float | None = None) -> None:
        text = body[: 4 * _BODY_CHARS].decode("utf-8", "replace") if isinstance(body, bytes) else body
        self.status = status
        self.body = text[:_BODY_CHARS].strip()
        self.retry_after = sane_delay(retry_after)
        super().__init__(f"HTTP {status}: {self.body}" if self.body else f"HTTP {status}")

    def __reduce__(self) -> tuple[type["HttpError"], tuple[int, str, float | None]]:
        return type(self), (self.status, self.body, self.retry_after)


def raise_for_status(response: Response) -> None:
    """Raise `HttpError` for a urllib3 response whose status is not 2xx."""
    if response.status not in _SUCCESS:
        raise HttpError(response.status, response.data or b"", retry_after(response.headers))


def retry_after(headers: Mapping[str, str]) -> float | None:
    """The pause that a `Retry-After` header asks for, in seconds from 0 to a week; None if none can be believed.

    A date is compared with the answer's own `Date`, so that a difference between the two clocks does not count.
    """
    found = {name.lower(): value for name, value in headers.items()}
    value = found.get("retry-after")
    if not isinstance(value, str):
        return None
    value = value.strip()
    if _SECONDS.fullmatch(value):
        return sane_delay(float(value))
    until = _http_date(value)
    if until is None:
        return None
    now = _http_date(found.get("date")) or datetime.now(UTC)
    return sane_delay((until - now).total_seconds())


def _http_date(value: object) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        parsed = email.utils.parsedate_to_datetime(value)
    except (ValueError, OverflowError, TypeError):
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)
