"""Figures that are known only within bounds: jittered pauses, and prices that depend on a token count."""

from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Generic, TypeVar

N = TypeVar("N", Decimal, timedelta)


@dataclass(frozen=True, slots=True)
class Range(Generic[N]):
    """From `low` to `high`, both included."""

    low: N
    high: N

    def __add__(self, other: "Range[N]") -> "Range[N]":
        return Range(self.low + other.low, self.high + other.high)

    def __contains__(self, value: N) -> bool:
        return self.low <= value <= self.high


def exactly(value: N) -> Range[N]:
    """A figure that is known."""
    return Range(value, value)
