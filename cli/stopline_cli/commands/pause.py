"""`stopline pause` and `stopline resume`: what people do to kinds."""

from typing import Annotated

import typer

from stopline.store.operate import KindChange, OperateStore
from stopline.store.reads import ReadStore
from stopline_cli import aftermath
from stopline_cli.actions import on_kind, request
from stopline_cli.errors import CommandError
from stopline_cli.options import Actor, Json, Kind, Local, On, Place, Reason
from stopline_cli.times import given_moment

Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="When it ends by itself: 2026-01-31T12:00:00Z.")
]
For = Annotated[str | None, typer.Option("--for", metavar="SPAN", help="After how long it ends by itself: 90m, 2h.")]


def pause(
    kind: Kind,
    reason: Reason,
    until: Until = None,
    for_: For = None,
    actor: Actor = None,
    on: On = Place.LOCAL,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Start no attempt of a kind until it is resumed or the time is over, whatever its breaker says."""
    asked = request("pause", actor, reason, on, local, as_json)
    if until is not None and for_ is not None:
        raise CommandError("--until and --for", "name two ends", "give one of the two")
    option, text = ("--until", until) if until is not None else ("--for", for_)

    def act(store: OperateStore, reads: ReadStore) -> KindChange:
        end = None if text is None else given_moment(option, text, reads.now(), 1)
        return store.pause_kind(kind, asked.actor.name, reason, end)

    on_kind(asked, kind, act, aftermath.paused)


def resume(
    kind: Kind,
    reason: Reason,
    actor: Actor = None,
    on: On = Place.LOCAL,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """End a kind's pause, a person's or its breaker's."""
    asked = request("resume", actor, reason, on, local, as_json)

    def act(store: OperateStore, _: ReadStore) -> KindChange:
        return store.resume_kind(kind, asked.actor.name, reason)

    on_kind(asked, kind, act, aftermath.resumed)
