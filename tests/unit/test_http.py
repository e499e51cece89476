import pickle
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from urllib3 import HTTPResponse

from stopline.http import HttpError, raise_for_status, retry_after


def test_success_passes() -> None:
    for status in (200, 201, 204):
        raise_for_status(HTTPResponse(b"", status=status))


@pytest.mark.parametrize("status", [301, 304, 400, 404, 429, 500, 503])
def test_anything_else_is_an_error_with_status_body_and_pause(status: int) -> None:
    with pytest.raises(HttpError) as caught:
        raise_for_status(HTTPResponse(b'{"error": "\xc3\xa9"}', {"Retry-After": "7"}, status=status))
    assert caught.value.status == status
    assert caught.value.retry_after == 7.0
    assert str(caught.value) == f'HTTP {status}: {{"error": "é"}}'


def test_a_huge_or_binary_body_is_bounded() -> None:
    assert len(str(HttpError(500, b"\xff\x00" * 5_000_000))) < 2100
    assert str(HttpError(500)) == "HTTP 500"


@pytest.mark.parametrize(
    "value", ["", "soon", "-5", "nan", "inf", "1e3", "99999999999999999999", "604801", "5, 7", "Mon, 99 Foo 2026", "٣"]
)
def test_a_pause_that_cannot_be_believed_is_ignored(value: str) -> None:
    assert retry_after({"Retry-After": value}) is None


def test_a_pause_in_seconds_is_read_whatever_the_case_of_its_name() -> None:
    assert retry_after({"retry-after": " 120 "}) == 120.0
    assert retry_after({"RETRY-AFTER": "0"}) == 0.0


def test_a_date_is_compared_with_the_clock_of_the_receiver() -> None:
    """CL-15: a receiver whose clock is an hour ahead still means thirty seconds."""
    theirs = datetime.now(UTC) + timedelta(hours=1)
    headers = {
        "Date": format_datetime(theirs, usegmt=True),
        "Retry-After": format_datetime(theirs + timedelta(seconds=30), usegmt=True),
    }
    assert retry_after(headers) == 30.0


def test_a_date_without_the_receivers_clock_is_compared_with_ours() -> None:
    soon = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    pause = retry_after({"Retry-After": soon})
    assert pause is not None
    assert 80 < pause <= 90
    assert retry_after({"Retry-After": "Wed, 21 Oct 2015 07:28:00 GMT"}) is None


def test_the_error_survives_the_way_from_a_child() -> None:
    error = pickle.loads(pickle.dumps(HttpError(429, "slow down", 3)))
    assert (error.status, error.body, error.retry_after) == (429, "slow down", 3.0)
