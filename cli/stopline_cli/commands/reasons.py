"""`stopline reasons`: why jobs stopped, and whether that is one bug, five, or one thing upstream."""

from dataclasses import asdict
from typing import Annotated, Any

import typer

from stopline.store.reads import ReadStore
from stopline.store.upkeep import UpkeepStore
from stopline_cli.kind_state import require_known
from stopline_cli.local.database import operator_session
from stopline_cli.options import Json, On, Place
from stopline_cli.output import print_json, print_lines, print_table
from stopline_cli.times import given_moment
from stopline_cli.verdict import verdict
from stopline_cli.words import failure, moment, one_line


def reasons(
    kind: Annotated[str | None, typer.Option(help="Only of this kind.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="TIME|SPAN", help="Only stopped since then: 24h, 2026-01-31T12:00:00Z.")
    ] = None,
    on: On = Place.LOCAL,
    as_json: Json = False,
) -> None:
    """Abandoned jobs grouped by kind, stop reason and error fingerprint, the largest group first."""
    with operator_session(on.value) as session:
        reads = ReadStore(session)
        require_known(kind, [one["name"] for one in reads.kinds()])
        start = None if since is None else given_moment("--since", since, reads.now(), -1)
        groups = UpkeepStore(session).reasons(kind, start)
    found = verdict(groups)
    if as_json:
        print_json({"verdict": asdict(found), "groups": groups})
        return
    print_lines([found.line, ""])
    print_table(
        f"Abandoned jobs on {on.value}",
        ("jobs", "unseen", "kind", "stop reason", "fingerprint", "last", "such as", "error of that one"),
        [_row(group) for group in groups],
    )


def _row(group: dict[str, Any]) -> tuple[object, ...]:
    return (
        group["jobs"],
        group["unacknowledged"],
        group["kind"],
        group["stop_reason"],
        group["fingerprint"],
        moment(group["last_at"]).removesuffix(" UTC"),
        group["example_job"],
        one_line(failure(group["error_class"], group["error"]), 120),
    )
