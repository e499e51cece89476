"""`stopline exposure`: the most that open jobs may still cost, with its working."""

from typing import Annotated, Any

import typer

from stopline_cli.arithmetic import today, working
from stopline_cli.local.database import reading
from stopline_cli.options import Json, On, Place
from stopline_cli.output import print_json, print_lines, print_table
from stopline_cli.words import counted, moment, usd


def exposure(
    kind: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    on: On = Place.LOCAL,
    as_json: Json = False,
) -> None:
    """What open jobs may still cost at most: per kind and in all, with the working and today's spend."""
    with reading(on.value) as store:
        found = store.exposure(kind)
    kinds, totals = found["kinds"], found["totals"]
    if as_json:
        print_json({**found, "kinds": [{**one, "working": working(one), "today": today(one)} for one in kinds]})
        return
    print_table(
        f"Exposure on {on.value} at {moment(found['now'])}",
        ("kind", "open rows", "attempts left", "at most", "spent today", "daily budget", "at most today", "state"),
        [_row(one) for one in kinds],
    )
    print_lines(["", "Working", *(f"  {working(one)}" for one in kinds)])
    print_lines(["", "Today", *(f"  {today(one)}" for one in kinds)])
    spent = usd(totals["spent_today_usd"])
    rows, attempts = counted(totals["open_rows"], "open row"), counted(totals["attempts_left"], "attempt")
    print_lines(
        [
            "",
            f"In all: {rows} with {attempts} left = at most {usd(totals['worst_case_usd'])}, of which at most "
            f"{usd(totals['worst_case_today_usd'])} today; {spent} are spent or reserved today.",
            "A running attempt is paid already: its money is reserved in today's spend.",
        ]
    )


def _row(kind: dict[str, Any]) -> tuple[object, ...]:
    budget = "none" if kind["daily_budget_usd"] is None else usd(kind["daily_budget_usd"])
    return (
        kind["kind"],
        kind["open_rows"],
        kind["attempts_left"],
        usd(kind["worst_case_usd"]),
        usd(kind["spent_today_usd"]),
        budget,
        usd(kind["worst_case_today_usd"]),
        "retired" if kind["retired"] else "paused" if kind["paused"] else "",
    )
