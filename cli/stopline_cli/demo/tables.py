"""The demo's closing tables. A text that does not fit its line ends in an ellipsis."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from stopline.policy import worst_case
from stopline.states import State
from stopline_cli.demo.clock import MINUTE
from stopline_cli.demo.figures import Figures, money
from stopline_cli.demo.found import FoundJob
from stopline_cli.demo.narrator import Narrator, since_start
from stopline_cli.output import plain
from stopline_cli.words import counted

_ORDER = (State.SUCCEEDED, State.ABANDONED, State.UNCERTAIN, State.PENDING, State.CLAIMED, State.CANCELLED)

Since = Callable[[str], timedelta]
"""Simulated time from the start to an ISO time."""


def tables(kinds: Sequence[Figures], stories: dict[str, str], since: Since) -> list[RenderableType]:
    """Everything that came of the demo, in the order in which it is read."""
    jobs = [job for kind in kinds for job in kind.jobs]
    owners = {kind.policy.name: kind.policy.owner for kind in kinds}
    return [
        *_section("What came of it", _states(kinds)),
        *_section("Succeeded after failures", *_stories(jobs, _recovered, stories, since)),
        *_section("Abandoned: never tried again, and why", *_stories(jobs, _is(State.ABANDONED), stories, since)),
        *_section(
            "Unknown outcome, settled by asking the receiver: nothing was sent again to find out",
            *_stories(jobs, _settled, stories, since),
        ),
        *_section(
            "Uncertain: nobody could say, so a person must; it is not sent again",
            *_stories(jobs, _is(State.UNCERTAIN), stories, since, owners),
        ),
        *_section("Attempts in the database, calls at the stand-ins", _calls(kinds)),
        *_section("Money", _money(kinds)),
        *_section(
            "At most, known before the first attempt",
            *(plain(f"  {kind.policy.name}: {worst_case(kind.policy).working}") for kind in kinds),
        ),
        *_section(
            "Uncapped: a loop that calls once per poll until it succeeds, for the same time",
            *(plain(f"  {kind.policy.name}: {kind.uncapped.working}") for kind in kinds),
        ),
    ]


def show(console: Console, parts: Iterable[RenderableType]) -> None:
    """Prints tables and lines. Lines that may fold do so on a terminal only."""
    narrator = Narrator(console)
    for part in parts:
        if not isinstance(part, Text):
            console.print(part)
        elif part.no_wrap:
            console.print(part, no_wrap=True, overflow="ellipsis")
        else:
            narrator.say(part.plain, str(part.style))


def _section(title: str, *parts: RenderableType) -> list[RenderableType]:
    return [Text(), plain(title, "bold"), *(parts or (plain("  none"),))]


def _states(kinds: Sequence[Figures]) -> Table:
    names = [state for state in _ORDER if any(state in kind.states for kind in kinds)]
    table = _table("kind", "jobs", *names)
    for kind in kinds:
        table.add_row(*_texts(kind.policy.name, len(kind.jobs), *(kind.states.get(name, 0) for name in names)))
    return table


def _calls(kinds: Sequence[Figures]) -> Table:
    table = _table("kind", "attempts", "without a call", "calls", "questions", "uncapped calls")
    for kind in kinds:
        counts = (kind.attempts, kind.without_call, kind.calls, kind.checks, kind.uncapped.calls)
        table.add_row(*_texts(kind.policy.name, *counts))
    return table


def _money(kinds: Sequence[Figures]) -> Table:
    table = _table("kind", "spent", "at most, by its policy", "uncapped")
    for kind in kinds:
        spent = None if kind.worst_case is None else kind.spent
        table.add_row(*_texts(kind.policy.name, *map(_usd, (spent, kind.worst_case, kind.uncapped.usd))))
    return table


def _stories(
    jobs: Iterable[FoundJob],
    wanted: Callable[[FoundJob], bool],
    stories: dict[str, str],
    since: Since,
    owners: Mapping[str, str] | None = None,
) -> list[RenderableType]:
    parts: list[RenderableType] = []
    for job in filter(wanted, jobs):
        story = stories.get(job.key)
        parts.append(_line(f"  {job.key}{story and f' ({story})'}", "cyan"))
        parts += [_line(f"    {line}") for line in _how(job)]
        parts += _attempts(job, since)
        parts += _checks(job, since)
        if owners is not None and job.review_by is not None:
            at = since_start(since(job.review_by) // MINUTE)
            parts.append(_line(f"    waits for {owners[job.kind]}, who should have looked by {at}"))
    return parts


def _how(job: FoundJob) -> list[str]:
    attempts = f"{len(job.attempts)} of {counted(job.max_attempts, 'attempt')}"
    why = f" ({job.stop_reason})" if job.state is State.ABANDONED else ""
    lines = [f"job {job.id}: {job.state}{why} after {attempts}, {money(job.usd)}"]
    if job.state is State.UNCERTAIN:
        lines.append(f"reference {job.effect_key}")
    return lines


def _attempts(job: FoundJob, since: Since) -> list[Text]:
    lines = []
    for number, attempt in enumerate(job.attempts, 1):
        at = since_start(since(attempt.started_at) // MINUTE)
        what = f"{number:>7} {at:>6}  {attempt.outcome:<9}  {money(attempt.usd):>7}  {attempt.reason}"
        lines.append(_line(what.rstrip()))
    return lines


def _checks(job: FoundJob, since: Since) -> list[Text]:
    lines = []
    for check in job.checks:
        at = since_start(since(check.asked_at) // MINUTE)
        lines.append(_line(f"{'asked':>7} {at:>6}  {check.answer:<18}  {check.reason}"))
    return lines


def _table(*columns: str) -> Table:
    table = Table(box=None, header_style="dim", padding=(0, 2, 0, 0), pad_edge=False)
    for place, column in enumerate(columns):
        table.add_column(column, justify="right" if place else "left")
    return table


def _line(text: str, style: str = "") -> Text:
    """A line that is cut where it does not fit."""
    line = plain(text, style)
    line.no_wrap = True
    return line


def _texts(*values: object) -> list[Text]:
    return [plain(value) for value in values]


def _usd(amount: Decimal | None) -> str:
    return "-" if amount is None else money(amount)


def _recovered(job: FoundJob) -> bool:
    return job.state is State.SUCCEEDED and len(job.attempts) > 1 and not job.checks


def _settled(job: FoundJob) -> bool:
    return job.state is not State.UNCERTAIN and bool(job.checks)


def _is(state: State) -> Callable[[FoundJob], bool]:
    return lambda job: job.state is state
