"""Tables of the scenes after the main one."""

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from stopline_cli.demo.outage import Outage
from stopline_cli.output import plain


def outage_lines(outage: Outage) -> Iterator[RenderableType]:
    """Calls in the outage beside those of a loop."""
    states = ", ".join(f"{count} {state}" for state, count in outage.states.items())
    yield Text()
    yield plain("The outage, ridden out: no attempt is spent while the kind is paused", "bold")
    yield plain(f"  calls while nothing worked: {outage.wasted} ({outage.working})")
    yield plain(f"  an uncapped, unpaused loop: {outage.uncapped_working}")
    yield plain(f"  jobs: {states}; {outage.paused} polls found the kind paused and made no call")
