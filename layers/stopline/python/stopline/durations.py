"""Durations as people write them: "30s", "15m", "6h", "1h30m"."""

import re
from datetime import timedelta

_UNITS = {
    "d": timedelta(days=1),
    "h": timedelta(hours=1),
    "m": timedelta(minutes=1),
    "s": timedelta(seconds=1),
    "ms": timedelta(milliseconds=1),
}
_FORM = re.compile(r"(?:(\d{1,9})d)?(?:(\d{1,9})h)?(?:(\d{1,9})m(?!s))?(?:(\d{1,9})s)?(?:(\d{1,9})ms)?", re.ASCII)
_RULE = 'must be a duration such as "30s", "15m", "6h", "7d" or "1h30m"'


def parse_duration(text: object) -> timedelta:
    """The duration that a text like "1h30m" names, or `ValueError` with the rule. Units, largest first: d h m s ms."""
    if isinstance(text, int | float) and not isinstance(text, bool):
        raise ValueError(f'{_RULE}; a bare number has no unit, write "{text}s" for seconds')
    if not isinstance(text, str):
        raise ValueError(f"{_RULE}, in quotes; got {type(text).__name__}")
    match = _FORM.fullmatch(text)
    if match is None or not text:
        raise ValueError(f'{_RULE}; got "{text[:40]}"')
    parts = zip(match.groups(), _UNITS.values(), strict=True)
    try:
        return sum((int(count) * unit for count, unit in parts if count is not None), timedelta())
    except OverflowError:
        raise ValueError(f'{_RULE}; "{text[:40]}" is too long') from None


def format_duration(duration: timedelta) -> str:
    """The shortest text that `parse_duration` reads as this duration; parts below a millisecond are dropped."""
    left = duration
    parts = []
    for name, unit in _UNITS.items():
        count, left = divmod(left, unit)
        if count:
            parts.append(f"{count}{name}")
    return "".join(parts) or "0s"


def in_seconds(duration: timedelta) -> int | float:
    """The duration in seconds, as an int when it is whole."""
    seconds = duration.total_seconds()
    return int(seconds) if seconds.is_integer() else seconds
