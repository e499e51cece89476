import math
from typing import Any

import pytest

from stopline.failure import Failure
from stopline.limits import ERROR_BYTES
from stopline.states import Outcome, StopReason


def test_whatever_is_put_in_a_failure_fits_a_row() -> None:
    """FI-01: no caller can build a failure that the database refuses."""
    failure = Failure(Outcome.CRASHED, "SIG\x00KILL" * 100, "bad \x00 \ud800 " * 10_000, retry_after=math.nan)
    assert len(failure.error_class.encode()) <= 200
    assert len(failure.error.encode()) <= ERROR_BYTES
    assert "\x00" not in failure.error + failure.error_class
    assert failure.retry_after is None


@pytest.mark.parametrize(
    ("asked", "kept"),
    [(5, 5.0), (0, 0.0), (-1, None), (math.inf, None), (10**400, None), (8 * 86_400, None), (True, None), ("5", None)],
)
def test_only_a_pause_that_can_be_kept_is_kept(asked: Any, kept: float | None) -> None:
    assert Failure(Outcome.TRANSIENT, "X", "x", retry_after=asked).retry_after == kept


def test_an_empty_error_becomes_the_class() -> None:
    assert Failure(Outcome.TIMEOUT, "Timeout", "").error == "Timeout"
    assert Failure(Outcome.TIMEOUT, "", "").error_class == "Exception"


def test_a_permanent_failure_names_its_stop_reason_and_no_other_failure_has_one() -> None:
    assert Failure(Outcome.PERMANENT, "X", "x").stop_reason is StopReason.PERMANENT_FAILURE
    assert Failure(Outcome.PERMANENT, "X", "x", stop_reason=StopReason.STEP_LIMIT).stop_reason is StopReason.STEP_LIMIT
    assert Failure(Outcome.TRANSIENT, "X", "x").stop_reason is None
    with pytest.raises(ValueError, match="does not belong"):
        Failure(Outcome.TRANSIENT, "X", "x", stop_reason=StopReason.PERMANENT_FAILURE)
    with pytest.raises(ValueError, match="does not belong"):
        Failure(Outcome.PERMANENT, "X", "x", stop_reason=StopReason.CANCELLED)


def test_success_and_release_are_not_failures() -> None:
    for outcome in (Outcome.SUCCEEDED, Outcome.RELEASED):
        with pytest.raises(ValueError, match="is not a failure"):
            Failure(outcome, "X", "x")
