"""Tables of the scenes after the main one."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from stopline_cli.demo.figures import money
from stopline_cli.demo.outage import Outage
from stopline_cli.demo.year import Year
from stopline_cli.output import plain
from stopline_cli.words import counted, span


def outage_lines(outage: Outage) -> Iterator[RenderableType]:
    """Calls in the outage beside those of a loop."""
    states = ", ".join(f"{count} {state}" for state, count in outage.states.items())
    yield Text()
    yield plain("The outage, ridden out: no attempt is spent while the kind is paused", "bold")
    yield plain(f"  calls while nothing worked: {outage.wasted} ({outage.working})")
    yield plain(f"  an uncapped, unpaused loop: {outage.uncapped_working}")
    yield plain(f"  jobs: {states}; {outage.paused} polls found the kind paused and made no call")


def year_lines(year: Year) -> Iterator[RenderableType]:
    """The incident's calls and dollars in a year, beside those of a loop."""
    every = span(year.policy.run.every.total_seconds())
    yield Text()
    yield plain(f"The incident for a year: its source returns {year.key} at every poll", "bold")
    yield plain(
        f"  capped: {counted(year.calls, 'call')}, {money(year.spent)} ({year.bound.working}); "
        f"{counted(year.calls_since, 'call')} after it stopped"
    )
    yield plain(
        f"  uncapped: {year.polls:,} polls (every {every}) x 1 call x {money(year.price)} = {money(year.uncapped)}; "
        f"at what those calls did cost here, {money(year.uncapped_as_recorded)}"
    )
    yield plain(
        f"  {len(year.ticks)} of these polls were run, with {counted(year.held, 'conversation')} returned again but "
        f"held; {sum(tick.changed for tick in year.ticks)} changed anything. No job is open, so none can come due "
        "between them"
    )
    yield plain(
        f"  {year.acknowledged} were acknowledged, and {counted(year.said_again, 'time')} again: that opens nothing"
    )
