"""`stopline show`: one job, why it is where it is, what comes next, and everything that happened to it."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from stopline_cli.errors import CommandError
from stopline_cli.explain import explain
from stopline_cli.local.database import reading
from stopline_cli.options import LARGEST_ID, Json, On, Place
from stopline_cli.outlook import Outlook, outlook
from stopline_cli.output import print_json, print_lines, print_table
from stopline_cli.timeline import timeline
from stopline_cli.words import dated, failure, line, moment


def show(
    job_id: Annotated[int, typer.Argument(metavar="ID", min=1, max=LARGEST_ID, help="The job's number.")],
    on: On = Place.LOCAL,
    as_json: Json = False,
) -> None:
    """One job: why it is where it is, what may happen next and who decides, and its timeline."""
    with reading(on.value) as store:
        shown = store.job(job_id)
    if shown is None:
        raise CommandError(
            f"job {job_id}", f"is not in the {on.value} database", "`stopline jobs` lists those that are"
        )
    ahead = outlook(shown["job"], shown["kind"], shown["now"])
    if as_json:
        entries = [asdict(entry) for entry in timeline(shown)]
        print_json({**shown, "explanation": explain(shown), "outlook": asdict(ahead), "timeline": entries})
        return
    _print(shown, ahead)


def _print(shown: dict[str, Any], ahead: Outlook) -> None:
    job = shown["job"]
    key = f" · key {line(job['key'])}" if job["key"] is not None else ""
    print_lines([f"Job {job['id']} · {job['kind']}{key} · {job['state']}", ""])
    print_lines([*explain(shown), "", *_ahead(ahead, shown["now"]), ""])
    print_table(
        "Timeline",
        ("at", "by", "what"),
        [(moment(entry.at).removesuffix(" UTC"), entry.by, entry.what) for entry in timeline(shown)],
    )
    error = failure(job["last_error_class"], job["last_error"])
    if "\n" in error.strip():
        print_lines(["", "Last error in full", *(f"  {part}" for part in error.strip().split("\n"))])


def _ahead(ahead: Outlook, now: str) -> list[str]:
    when = "nothing is planned" if ahead.next_at is None else dated(ahead.next_at, now)
    lines = [
        f"Next        {when}{f', set by {line(ahead.set_by)}' if ahead.set_by else ''}",
        f"Decides     {line(ahead.decides)}",
        f"Effect      {_EXISTS[ahead.effect.may_exist]}: {ahead.effect.why}",
    ]
    if ahead.may_happen:
        lines.append(f"May become  {'; '.join(ahead.may_happen)}")
    return lines


_EXISTS = {"no": "does not exist", "maybe": "may exist already", "yes": "exists"}
