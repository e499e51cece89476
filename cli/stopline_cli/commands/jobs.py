"""`stopline jobs`: the newest jobs, what comes next of each and who decides."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Annotated, Any

import typer

from stopline.states import State
from stopline_cli.kind_state import kind_state, require_known, short_state
from stopline_cli.local.database import reading
from stopline_cli.options import Json, On, Place
from stopline_cli.outlook import outlook
from stopline_cli.output import print_json, print_lines, print_table
from stopline_cli.words import away, line, moment, one_line

MOST = 1000

Row = Mapping[str, Any]


def jobs(
    kind: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    state: Annotated[State | None, typer.Option(help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many at most.")] = 50,
    on: On = Place.LOCAL,
    as_json: Json = False,
) -> None:
    """The newest jobs of a local database, newest first: when each runs again, what set that, and who decides."""
    with reading(on.value) as store:
        kinds = {one["name"]: one for one in store.kinds()}
        require_known(kind, kinds)
        found = store.jobs(kind, None if state is None else state.value, limit)
        now = f"{store.now():%Y-%m-%dT%H:%M:%S.%f%z}"
    if as_json:
        print_json([{**job, "outlook": asdict(outlook(job, kinds[job["kind"]], now))} for job in found])
        return
    print_table(
        f"Jobs on {on.value} at {moment(now)}",
        ("id", "kind", "key", "state", "attempts", "effect", "next or ended", "set by", "decides", "why"),
        [_row(job, kinds[job["kind"]], now) for job in found],
    )
    held = [one for name, one in kinds.items() if any(job["kind"] == name for job in found) and short_state(one, now)]
    if held:
        print_lines(["", *(sentence for one in held for sentence in kind_state(one, now))])


def _row(job: Row, kind: Row, now: str) -> tuple[object, ...]:
    """An open job's next time and last error; a stopped one's end and stop reason."""
    ahead = outlook(job, kind, now)
    when = "" if ahead.next_at is None else away(ahead.next_at, now)
    if when.endswith(" ago"):
        when = f"due for {when.removesuffix(' ago')}"
    return (
        job["id"],
        job["kind"],
        one_line(job["key"], 40),
        job["state"],
        f"{job['attempts']}/{job['max_attempts']}",
        ahead.effect.may_exist,
        away(job["finished_at"], now) if job["finished_at"] and not when else when,
        ahead.set_by,
        one_line(ahead.decides, 40),
        line(job["stop_reason"] if job["finished_at"] else job["last_error_class"]),
    )
