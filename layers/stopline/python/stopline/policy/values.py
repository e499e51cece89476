"""The types that a policy's keys can have: how each is read, what it must satisfy, and how it is stored in a row.

`read` raises `ValueError` with the rule and, where there is one, the fix; the caller adds the file and the key.
"""

import math
import re
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from typing import Any, Protocol

from stopline.durations import format_duration, in_seconds, parse_duration

_SIZE = re.compile(r"(\d{1,9}) ?(B|KiB|MiB)", re.ASCII)
_SIZE_UNITS = {"B": 1, "KiB": 1024, "MiB": 1024 * 1024}
_CONTROL = re.compile("[\x00-\x1f\x7f\ud800-\udfff]")


class ValueType(Protocol):
    """What a key holds."""

    def read(self, raw: object) -> Any:
        """The typed value of what the file says, or `ValueError` naming the rule."""

    def to_row(self, value: Any) -> object:
        """The value as JSON that the database's column takes."""

    def describe(self) -> str:
        """The type and its bounds in words, for the reference and for errors."""


def shown(raw: object) -> str:
    """A value from a policy file, short enough for an error."""
    if isinstance(raw, bool):
        return "true" if raw else "false"
    text = str(raw) if isinstance(raw, int | float | Decimal) else repr(raw)
    return text if len(text) <= 60 else f"{text[:57]}..."


class Plain:
    """A value that is stored as it is."""

    def to_row(self, value: Any) -> object:
        return value


@dataclass(frozen=True)
class Flag(Plain):
    """true or false."""

    def read(self, raw: object) -> bool:
        if not isinstance(raw, bool):
            raise ValueError(f"must be true or false, without quotes; got {shown(raw)}")
        return raw

    def describe(self) -> str:
        return "true or false"


@dataclass(frozen=True)
class Text(Plain):
    """One line of text."""

    longest: int = 200

    def read(self, raw: object) -> str:
        if not isinstance(raw, str):
            raise ValueError(f"must be text in quotes; got {shown(raw)}")
        text = raw.strip()
        if not text:
            raise ValueError("must not be empty")
        if len(text) > self.longest:
            raise ValueError(f"must be at most {self.longest} characters; got {len(text)}")
        if _CONTROL.search(text):
            raise ValueError("must be one line without control characters")
        return text

    def describe(self) -> str:
        return "text"


@dataclass(frozen=True)
class Pattern(Text):
    """Text of a fixed form. `form` says in words what `pattern` means."""

    pattern: str = ""
    form: str = ""

    def read(self, raw: object) -> str:
        text = super().read(raw)
        if re.fullmatch(self.pattern, text) is None:
            raise ValueError(f"must be {self.form}; got {shown(text)}")
        return text

    def describe(self) -> str:
        return self.form


@dataclass(frozen=True)
class Choice(Plain):
    """One of a few words."""

    words: tuple[str, ...]

    def read(self, raw: object) -> str:
        if not isinstance(raw, str) or raw not in self.words:
            raise ValueError(f"must be {self.describe()}; got {shown(raw)}")
        return raw

    def describe(self) -> str:
        return " or ".join(f'"{word}"' for word in self.words)


@dataclass(frozen=True)
class Whole(Plain):
    """An integer within bounds."""

    least: int
    most: int

    def read(self, raw: object) -> int:
        if isinstance(raw, bool) or not isinstance(raw, int) or not self.least <= raw <= self.most:
            raise ValueError(f"must be {self.describe()}; got {shown(raw)}")
        return raw

    def describe(self) -> str:
        return f"a whole number from {self.least:,} to {self.most:,}"


@dataclass(frozen=True)
class Share:
    """A part of a whole: above 0, at most 1."""

    def read(self, raw: object) -> float:
        number = None if isinstance(raw, str) else _number(raw)
        if number is None or not 0 < number <= 1:
            raise ValueError(f"must be {self.describe()}; got {shown(raw)}")
        return float(number)

    def to_row(self, value: float) -> object:
        return value

    def describe(self) -> str:
        return "a number above 0 and at most 1"


@dataclass(frozen=True)
class Money:
    """US dollars with at most six decimals, as the database keeps them: numeric(12,6)."""

    most: Decimal = Decimal("999999.999999")

    def read(self, raw: object) -> Decimal:
        amount = _number(raw)
        if amount is None or not 0 <= amount <= self.most:
            raise ValueError(f"must be {self.describe()}; got {shown(raw)}")
        if amount != round(amount, 6):
            raise ValueError(f"must have at most 6 decimals; got {shown(raw)}, write {round(amount, 6):f}")
        return amount.normalize() if amount else Decimal(0)

    def to_row(self, value: Decimal) -> object:
        return f"{value:f}"

    def describe(self) -> str:
        return f"an amount in US dollars from 0, below {self.most:,.0f}"


@dataclass(frozen=True)
class Duration:
    """A span of time within bounds, written with its unit; a multiple of `step` if that is set."""

    least: timedelta
    most: timedelta
    step: timedelta | None = None

    def read(self, raw: object) -> timedelta:
        duration = raw if isinstance(raw, timedelta) else parse_duration(raw)
        if not self.least <= duration <= self.most:
            raise ValueError(f"must be {self.describe()}; got {format_duration(duration)}")
        if self.step is not None and duration % self.step:
            raise ValueError(f"must be a multiple of {format_duration(self.step)}; got {format_duration(duration)}")
        return duration

    def to_row(self, value: timedelta) -> object:
        return in_seconds(value)

    def describe(self) -> str:
        return f"a duration from {format_duration(self.least)} to {format_duration(self.most)}"


@dataclass(frozen=True)
class Size(Plain):
    """A number of bytes, or text such as "64 KiB"."""

    most: int

    def read(self, raw: object) -> int:
        size = raw
        if isinstance(raw, str) and (match := _SIZE.fullmatch(raw.strip())):
            size = int(match.group(1)) * _SIZE_UNITS[match.group(2)]
        if isinstance(size, bool) or not isinstance(size, int) or not 1 <= size <= self.most:
            raise ValueError(f"must be {self.describe()}; got {shown(raw)}")
        return size

    def describe(self) -> str:
        return f'a size such as "64 KiB", at most {self.most // 1024} KiB'


def _number(raw: object) -> Decimal | None:
    """A finite number exactly as it was written, or None."""
    if isinstance(raw, bool) or not isinstance(raw, int | float | Decimal | str):
        return None
    if isinstance(raw, float) and not math.isfinite(raw):
        return None
    try:
        number = Decimal(str(raw))
    except ArithmeticError:
        return None
    return number if number.is_finite() and -30 < number.adjusted() < 30 else None
