"""`stopline demo`: the incident that the project exists for, ending properly."""

import sys
from typing import Annotated

import typer
from rich.console import Console

from stopline.limits import MAX_ATTEMPTS
from stopline.states import State
from stopline_cli.demo.narrator import Narrator
from stopline_cli.demo.performance import Performance, perform
from stopline_cli.demo.result import result_as_json
from stopline_cli.demo.scenes import outage_lines, year_lines
from stopline_cli.demo.tables import show, tables
from stopline_cli.local.interrupts import Interrupts
from stopline_cli.options import Json
from stopline_cli.output import console, print_json
from stopline_cli.words import span

COMMAND = ".venv/bin/stopline"


def demo(
    cap: Annotated[
        int | None,
        typer.Option(min=1, max=MAX_ATTEMPTS, help="Attempts that close_conversation may make, instead of its own."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Run the incident end to end: real database, functions and wire protocols, scripted faults, and a fast clock.

    Ends with status 0 only if everything came out as the faults and the policies say it must.
    """
    out = Console(stderr=True, highlight=False) if as_json else console()
    narrator = Narrator(out)
    with Interrupts() as interrupts:

        def check() -> None:
            if interrupts.count:
                raise KeyboardInterrupt

        try:
            performance = perform(cap, narrator, check)
        except Exception:
            # What an interrupt broke, an initdb for one, is no failure of its own.
            check()
            raise
    _report(performance, narrator, None if as_json else out)
    if as_json:
        print_json(
            result_as_json(
                performance.kinds,
                performance.expected,
                performance.differing,
                outage=performance.outage,
                year=performance.year,
                simulated_hours=performance.lasted.total_seconds() / 3600,
                seconds=performance.seconds,
            )
        )
        sys.stdout.flush()
    if performance.differing:
        raise typer.Exit(1)


def _report(performance: Performance, narrator: Narrator, out: Console | None) -> None:
    """Tables where there is a console for them, and the verdict in any case."""
    if out is not None:
        stories = {work.key: work.story for work in performance.expected}
        show(out, tables(performance.kinds, stories, performance.since))
        show(out, [*outage_lines(performance.outage), *year_lines(performance.year)])
    narrator.say()
    for difference in performance.differing:
        narrator.say(f"NOT AS EXPECTED: {difference}", "bold red")
    if not performance.differing:
        jobs = len(performance.expected) + performance.outage.expected.jobs
        narrator.say(f"All {jobs} jobs ended as their faults and the policies say they must.", "bold green")
    narrator.say(f"{span(performance.passed.total_seconds())} passed in {performance.seconds:.1f} s.")
    if out is not None:
        narrator.say()
        narrator.say_all(_closer(performance))


def _closer(performance: Performance) -> list[str]:
    """Commands that show more of what the demo left."""
    lines = ["Look closer:"]
    for state, what in ((State.ABANDONED, "why {} stopped"), (State.UNCERTAIN, "what is known of {}")):
        jobs = [job for kind in performance.kinds for job in kind.jobs if job.state is state]
        # The one with the longest history says most.
        job = max(jobs, key=lambda job: len(job.attempts), default=None)
        if job is not None:
            lines.append(_command(f"show {job.id} --on demo", what.format(job.key)))
    return [*lines, _command("jobs --on demo", "all of them")]


def _command(words: str, what: str) -> str:
    return f"  {COMMAND} {words:<20} {what}"
