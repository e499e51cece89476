"""What a check found, and what to do about it."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any


class Level(StrEnum):
    """Worst last."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Finding:
    """One check. `found` says what was seen, `fix` what to do about it; None when it is ok."""

    part: str
    name: str
    level: Level
    found: str
    fix: str | None = None

    def to_row(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return {**asdict(self), "level": str(self.level)}

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> "Finding":
        """From `to_row`, or from a row of stopline.doctor()."""
        return cls(row["part"], row["name"], Level(row["level"]), row["found"], row["fix"])


def ok(part: str, name: str, found: str) -> Finding:
    """A check that found nothing wrong."""
    return Finding(part, name, Level.OK, found)


def warn(part: str, name: str, found: str, fix: str) -> Finding:
    """Something that works and should be looked at."""
    return Finding(part, name, Level.WARN, found, fix)


def fail(part: str, name: str, found: str, fix: str) -> Finding:
    """A rule that does not hold, or a check that could not be made."""
    return Finding(part, name, Level.FAIL, found, fix)


def worst(findings: Iterable[Finding]) -> Level:
    """The worst level among them; ok when there are none."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.OK)
