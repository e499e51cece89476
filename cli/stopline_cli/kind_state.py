"""Whether a kind starts attempts now, and until when and why not. Pure."""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

from stopline_cli.errors import CommandError
from stopline_cli.words import away, counted, dated, instant, line, usd

Row = Mapping[str, Any]
BREAKER = "breaker"


def require_known(kind: str | None, kinds: Collection[str]) -> None:
    """Raises CommandError for a kind that the database does not know: nothing found would look like nothing wrong."""
    if kind is not None and kind not in kinds:
        known = ", ".join(sorted(kinds)) or "none"
        raise CommandError("--kind", f"{kind!r} is not known to this database", f"give one of: {known}")


def is_held(kind: Row, now: str) -> bool:
    """Whether no attempt of the kind starts now, but for a probe."""
    if kind["retired_at"] is not None:
        return True
    if kind["paused_at"] is None:
        return False
    return kind["paused_by"] == BREAKER or kind["paused_until"] is None or instant(kind["paused_until"]) > instant(now)


def short_state(kind: Row, now: str) -> str:
    """One word or two for a table; empty for a kind that runs."""
    if not is_held(kind, now):
        return "over budget" if kind["over_budget"] else "full" if kind["full"] else ""
    if kind["retired_at"] is not None:
        return "retired"
    return "breaker open" if kind["paused_by"] == BREAKER else "paused"


def kind_state(kind: Row, now: str) -> list[str]:
    """Sentences on what keeps the kind's jobs from being claimed; none for a kind that runs."""
    if not is_held(kind, now):
        return _limited(kind, now)
    if kind["retired_at"] is not None:
        since = dated(kind["retired_at"], now)
        return [
            f"Nothing will claim it: kind {kind['name']} was retired {since}. Its jobs run when it is deployed again."
        ]
    why = line(kind["paused_why"])
    if kind["paused_by"] == BREAKER:
        return [f"The breaker of kind {kind['name']} is open ({_level(kind)}), because {why}.", *_probe(kind, now)]
    until = f" until {dated(kind['paused_until'], now)}" if kind["paused_until"] else ", until somebody resumes it"
    return [f"Nothing claims it now: {line(kind['paused_by'])} paused kind {kind['name']}{until}, because {why}."]


def next_day(now: str) -> str:
    """The start of the next UTC day, when a daily budget begins anew: ISO text."""
    midnight = instant(now).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    return midnight.isoformat()


def _limited(kind: Row, now: str) -> list[str]:
    found = []
    if kind["over_budget"]:
        budget, day = usd(kind["daily_budget_usd"]), dated(next_day(now), now)
        found.append(f"The daily budget of kind {kind['name']} ({budget}) pays no further attempt until {day}.")
    if kind["full"]:
        running = counted(kind["concurrency"], "job")
        found.append(f"Kind {kind['name']} runs {running} already, as many as it may (concurrency).")
    return found


def _level(kind: Row) -> str:
    return f"{counted(max(1, kind['breaker_level']), 'cool-down')} so far"


def _probe(kind: Row, now: str) -> list[str]:
    if away(kind["paused_until"], now).startswith("in "):
        return [f"It cools down until {dated(kind['paused_until'], now)}; then one attempt is let through as a probe."]
    if kind["probe_job"] is not None and kind["probe_until"] is not None:
        expires = dated(kind["probe_until"], now)
        return [f"Job {kind['probe_job']} is the probe: its success resumes the kind. The probe expires {expires}."]
    cooled = f"It cooled down {dated(kind['paused_until'], now)}: the next claim is a probe"
    return [
        f"{cooled}, and its success resumes the kind.",
        "A probe is never a job's last attempt; with no other job left, a person resumes the kind.",
    ]
