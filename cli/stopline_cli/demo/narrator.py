"""Tells what happens while the demo runs, a line at a time. Each stop of the clock begins with its simulated time."""

import sys
import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console

from stopline.states import Outcome
from stopline_cli.output import plain
from stopline_cli.words import span

_WATCHED = ("AbandonedOpen", "Uncertain", "Stuck", "PollersSilent", "SweeperSilent")
_INDENT = " " * 11
_DAY = 24 * 60
_TWO_DAYS = 2 * _DAY
_TICK = {
    "created": "new from its source",
    "held": "returned again but held",
    "conflict": "in conflict",
    "invalid": "invalid",
    "reopen_limit": "stopped as reopen_limit",
}


def since_start(minutes: int) -> str:
    """Simulated minutes since the start as hours and minutes, `+3:05`, and from two days on as days: `+30 d`."""
    if minutes >= _TWO_DAYS:
        return f"+{minutes // _DAY} d"
    return f"+{minutes // 60}:{minutes % 60:02d}"


class Narrator:
    """Writes lines to a console. Colours show on a terminal only."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._minute: int | None = None
        self._watched: dict[str, float] = {}

    def say(self, line: str = "", style: str = "") -> None:
        """One line of its own, folded at a terminal's width."""
        width = self._console.width if self._console.is_terminal else sys.maxsize
        for part in textwrap.wrap(line, width, subsequent_indent=_INDENT) or [""]:
            self._console.print(plain(part, style), soft_wrap=True)

    def say_all(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.say(line)

    def clock(self, minute: int) -> None:
        """The clock stands at a minute now."""
        self._minute = minute

    def waits(self, job: Mapping[str, Any], minutes: int) -> None:
        """Nothing is due for a while; this job is next."""
        length = span(minutes * 60)
        what = "is asked about" if job["state"] == "uncertain" else f"is due (set by {job['due_rule']})"
        self._at_this_time(f"{length} later {job['key']} {what}", "dim")

    def polled(self, kind: str, poll: Mapping[str, Any]) -> None:
        """What a poller reported for its kind."""
        parts = [f"{poll['tick'][what]} {words}" for what, words in _TICK.items() if poll["tick"].get(what)]
        parts += [f"{poll['outcomes'][outcome]} {outcome}" for outcome in Outcome if poll["outcomes"].get(outcome)]
        answers = [f"{count} {answer}" for answer, count in sorted(poll.get("checks", {}).items())]
        parts += [f"receiver asked: {', '.join(answers)}"] if answers else []
        if poll["released"]:
            parts.append(f"{poll['released']} released")
        if poll.get("note"):
            parts.append(f"note: {poll['note']}")
        if parts:
            self._at_this_time(f"{kind}: {', '.join(parts)}")

    def swept(self, counts: Mapping[str, int]) -> None:
        """What the sweeper ended, if anything."""
        parts = [f"{count} {transition}" for transition, count in counts.items() if count]
        if parts:
            self._at_this_time(f"sweeper: {', '.join(parts)}")

    def watched(self, totals: Mapping[str, float | None]) -> None:
        """The monitor's totals, when one of those that alarms watch has changed."""
        now = {name: totals.get(name) or 0 for name in _WATCHED}
        changed = [f"{name} {value:g}" for name, value in now.items() if value != self._watched.get(name, 0)]
        self._watched = now
        if changed:
            self._at_this_time(f"monitor: {', '.join(changed)}")

    def killed(self, pid: int, key: str) -> None:
        """The driver has killed an attempt's process."""
        self._at_this_time(f"process {pid}, which runs {key}, is killed by SIGKILL", "yellow")

    def stopped(self, job: Mapping[str, Any]) -> None:
        """A job has come to a stop that somebody should see."""
        why = job["stop_reason"] or "it was sent, and the answer was lost"
        self._at_this_time(f"{job['key']} is {job['state']}: {why}", "yellow")

    def asked(self, before: Mapping[str, Any], job: Mapping[str, Any], owner: str) -> None:
        """What came of asking about a job whose outcome nobody knew, if anything did."""
        if job["state"] == "succeeded":
            self._at_this_time(f"{job['key']} is succeeded: its receiver has it, and nothing was sent again", "green")
        elif job["state"] == "pending":
            self._at_this_time(f"{job['key']} is pending: its receiver does not have it", "yellow")
        elif before["next_check_at"] is not None and job["next_check_at"] is None:
            self._at_this_time(f"{job['key']} waits for {owner}: {job['checks']} questions settled nothing", "yellow")

    def _at_this_time(self, line: str, style: str = "") -> None:
        mark = "" if self._minute is None else since_start(self._minute)
        self._minute = None
        self.say(f"{mark:>7}  {line}", style)
