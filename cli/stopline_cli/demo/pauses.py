"""How long the pause before a retry may be, by the rules of the design."""

from datetime import timedelta

from stopline.policy import Policy
from stopline.policy.sections import Retry
from stopline_cli.demo.ranges import Range

_SPREAD = 1.25
"""Everybody who was throttled was told the same second, so what a receiver asks for is spread by up to a quarter."""
_CLOCK_SLACK = timedelta(minutes=1)
"""Real time that passes between two stops of the demo's clock."""


def pause(failures: int, retry: Retry, asked: float | None = None) -> Range[timedelta]:
    """The pause after this many failures: backoff, or what the receiver asked for (in seconds) where that is longer."""
    doubled = min(retry.cap, retry.base * 2 ** min(failures - 1, 40))
    wait = Range(doubled / 2, doubled)
    if asked is None:
        return wait
    least = min(timedelta(seconds=asked), retry.cap * 0.9)
    return Range(max(wait.low, least), max(wait.high, min(least * _SPREAD, retry.cap)))


def start_delay(policy: Policy) -> Range[timedelta]:
    """From an attempt's due time to its claim: its poller looks only so often."""
    return Range(timedelta(), policy.run.every + _CLOCK_SLACK)
