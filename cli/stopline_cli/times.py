"""Times that people give: a moment with its zone, or a span counted from the database's time."""

from datetime import UTC, datetime, timedelta

from stopline.durations import parse_duration
from stopline_cli.errors import CommandError

_EXAMPLE = "write 2026-01-31T12:00:00Z, or a span such as 90m, 24h or 7d"


def given_moment(option: str, text: str, now: datetime, direction: int) -> datetime:
    """The moment that `text` names, in UTC. A span counts from `now`: ahead with direction 1, back with -1."""
    span = _span(text)
    try:
        if span is not None:
            return (now + direction * span).astimezone(UTC)
        moment = datetime.fromisoformat(text)
        if moment.utcoffset() is None:
            raise CommandError(option, f"{text!r} has no time zone", _EXAMPLE)
        return moment.astimezone(UTC)
    except OverflowError:
        raise CommandError(option, f"{text!r} lies outside the years 1 to 9999", _EXAMPLE) from None
    except ValueError:
        raise CommandError(option, f"{text!r} is neither a time nor a span", _EXAMPLE) from None


def _span(text: str) -> timedelta | None:
    try:
        return parse_duration(text)
    except ValueError:
        return None
