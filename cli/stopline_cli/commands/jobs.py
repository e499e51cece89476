"""`stopline jobs`: the newest jobs."""

from typing import Annotated, Any

import typer

from stopline.states import State
from stopline_cli.local.database import reading
from stopline_cli.options import Json, On, Place
from stopline_cli.output import print_json, print_table
from stopline_cli.words import moment

MOST = 1000


def jobs(
    kind: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    state: Annotated[State | None, typer.Option(help="Only in this state.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many at most.")] = 50,
    on: On = Place.LOCAL,
    as_json: Json = False,
) -> None:
    """The newest jobs of a local database, newest first."""
    with reading(on.value) as store:
        found = store.jobs(kind, None if state is None else state.value, limit)
    if as_json:
        print_json(found)
        return
    print_table(
        f"Jobs on {on.value}",
        ("id", "kind", "key", "state", "attempts", "due or ended", "why"),
        [_row(job) for job in found],
    )


def _row(job: dict[str, Any]) -> tuple[object, ...]:
    """An open job's due time and last error; a stopped one's end and stop reason."""
    why = job["stop_reason"] if job["finished_at"] else job["last_error_class"]
    when = moment(job["finished_at"] or job["due_at"]).removesuffix(" UTC")
    return job["id"], job["kind"], job["key"], job["state"], f"{job['attempts']}/{job['max_attempts']}", when, why
