"""`stopline show`: one job, and why it is where it is."""

from typing import Annotated, Any

import typer

from stopline_cli.errors import CommandError
from stopline_cli.explain import explain
from stopline_cli.local.database import reading
from stopline_cli.options import Json, On, Place
from stopline_cli.output import print_json, print_lines, print_table
from stopline_cli.words import failure, moment, usd

LARGEST_ID = 2**63 - 1


def show(
    job_id: Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="The job's number.")],
    on: On = Place.LOCAL,
    as_json: Json = False,
) -> None:
    """One job: why it is where it is, its attempts, and what was done to it."""
    with reading(on.value) as store:
        shown = store.job(job_id)
    if shown is None:
        raise CommandError(
            f"job {job_id}", f"is not in the {on.value} database", "`stopline jobs` lists those that are"
        )
    if as_json:
        print_json({**shown, "explanation": explain(shown)})
        return
    _print(shown)


def _print(shown: dict[str, Any]) -> None:
    job = shown["job"]
    key = f" · key {job['key']}" if job["key"] is not None else ""
    print_lines([f"Job {job['id']} · {job['kind']}{key} · {job['state']}", ""])
    print_lines([*explain(shown), ""])
    print_table(
        "Attempts",
        ("round", "attempt", "started", "ended", "outcome", "cost", "error"),
        [_attempt(attempt) for attempt in shown["attempts"]],
    )
    if shown["checks"]:
        print_lines([""])
        print_table(
            "Checks with the receiver",
            ("round", "check", "asked", "answer", "detail"),
            [(c["round"], c["number"], moment(c["asked_at"]), c["answer"], c["detail"]) for c in shown["checks"]],
        )
    if shown["events"]:
        print_lines([""])
        print_table(
            "Events",
            ("at", "action", "reason", "by"),
            [(moment(e["at"]), e["action"], e["reason"], e["actor"]) for e in shown["events"]],
        )


def _attempt(attempt: dict[str, Any]) -> tuple[object, ...]:
    error = failure(attempt["error_class"], attempt["error"])
    times = (moment(attempt[when]).removesuffix(" UTC") for when in ("started_at", "finished_at"))
    return attempt["round"], attempt["attempt"], *times, attempt["outcome"], usd(attempt["cost_usd"]), error
