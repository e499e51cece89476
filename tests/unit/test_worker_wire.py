"""Wire timeouts end before the attempt does."""

import pytest

from stopline.worker.wire import wire_timeouts


@pytest.mark.parametrize("left", [0.7, 1, 2, 10, 60, 300, 900])
def test_connecting_and_reading_together_end_before_the_attempt(left: float) -> None:
    timeouts = wire_timeouts(left)
    assert 0 < timeouts.connect <= 5
    assert timeouts.connect + timeouts.read <= left - 0.2
    assert timeouts.read >= left / 4


@pytest.mark.parametrize("left", [-1, 0, 0.01])
def test_an_attempt_without_time_gets_timeouts_that_clients_accept(left: float) -> None:
    timeouts = wire_timeouts(left)
    assert (timeouts.connect, timeouts.read) == (0.05, 0.05)
