"""Times and amounts as people say them."""

from datetime import UTC, datetime

_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def span(seconds: float) -> str:
    """A length of time in its two largest units: `1 h 5 min`, `45 s`, `0.3 s`."""
    if seconds < 0:
        return f"-{span(-seconds)}"
    if seconds < 1:
        return f"{seconds:.1f} s" if seconds >= 0.05 else "0 s"
    left = round(seconds)
    parts = []
    for name, size in _UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
        elif parts:
            break
    return " ".join(parts[:2])


def instant(text: str) -> datetime:
    """An ISO time from the database."""
    return datetime.fromisoformat(text).astimezone(UTC)


def moment(text: str | None) -> str:
    """An ISO time as `2026-01-31 12:00:05 UTC`; empty for none."""
    return "" if text is None else f"{instant(text):%Y-%m-%d %H:%M:%S} UTC"


def away(text: str, now: str) -> str:
    """How far a time lies from `now`: `in 12 min`, `3 min ago`, `now`."""
    seconds = (instant(text) - instant(now)).total_seconds()
    if abs(seconds) < 0.5:
        return "now"
    return f"in {span(seconds)}" if seconds > 0 else f"{span(-seconds)} ago"


def dated(text: str, now: str) -> str:
    """A time with how far it lies from `now`: `2026-01-31 12:00:05 UTC (in 12 min)`."""
    return f"{moment(text)} ({away(text, now)})"


def usd(amount: float | str) -> str:
    """Dollars with cents, and with up to six places where there are any: `$1.00`, `$0.0012`."""
    whole, _, places = f"{float(amount):.6f}".partition(".")
    return f"${whole}.{places.rstrip('0').ljust(2, '0')}"


def failure(error_class: str | None, error: str | None) -> str:
    """An error with its class in front, once: most texts begin with it already."""
    name, text = error_class or "", error or ""
    first = text.partition("\n")[0]
    return text if not name or name in first else f"{name}: {text}" if text else name


def counted(number: int, thing: str) -> str:
    """`1 attempt`, `2 attempts`."""
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def line(text: object) -> str:
    """A text that somebody else wrote as part of one line of ours: its line breaks become visible and begin nothing."""
    return "" if text is None else str(text).replace("\r", "\\r").replace("\n", "\\n")


def one_line(text: str | None, longest: int = 300) -> str:
    """The first line of a text, cut after `longest` characters."""
    first = line((text or "").strip().partition("\n")[0])
    return f"{first[:longest]}…" if len(first) > longest else first


def listed(parts: list[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), parts[-1]))) if parts else ""
