"""Actions on jobs and kinds, one by one: what was done is said at once, and one refusal stops nothing else."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from stopline.errors import InfrastructureError, InvalidInput, Refused
from stopline.store.operate import JobChange, KindChange, OperateStore
from stopline.store.reads import ReadStore
from stopline_cli.actor import Actor, acting
from stopline_cli.errors import CommandError
from stopline_cli.local.database import operator_session
from stopline_cli.options import Place, place
from stopline_cli.output import print_json, print_lines
from stopline_cli.words import counted, line

REFUSED, UNKNOWN, NOT_TRIED = "refused", "unknown", "not_tried"
"""Answers beside the engine's: the database said no; it was lost while it was asked; it was asked no more."""


@dataclass(frozen=True)
class Request:
    """What was asked for: the action by its command's name, who asks and why, where, and in which form to answer."""

    action: str
    actor: Actor
    reason: str
    place: Place
    as_json: bool


def request(action: str, actor: str | None, reason: str, on: Place, local: bool, as_json: bool) -> Request:
    """The request that the shared options make together. Raises CommandError for a reason or name that says nothing."""
    who = acting(actor)
    for option, text in (("--reason", reason), ("--actor", who.name)):
        if not text.strip():
            raise CommandError(option, "says nothing", "it stands in the audit for whoever reads it after you")
    return Request(action, who, reason, place(on, local), as_json)


def on_jobs(
    asked: Request,
    jobs: Sequence[int],
    act: Callable[[OperateStore, ReadStore, int], JobChange],
    words: Callable[[JobChange], str],
) -> None:
    """Acts on each job once, in the order given. Exits with status 1 when one was refused."""
    with operator_session(asked.place.value) as session:
        store, reads = OperateStore(session), ReadStore(session)
        _report(asked, "job", _one_by_one(dict.fromkeys(jobs), lambda job: act(store, reads, job), words))


def on_kind(
    asked: Request,
    kind: str,
    act: Callable[[OperateStore, ReadStore], KindChange],
    words: Callable[[KindChange], str],
) -> None:
    """Acts on one kind. Exits with status 1 when that was refused."""
    with operator_session(asked.place.value) as session:
        store, reads = OperateStore(session), ReadStore(session)
        _report(asked, "kind", _one_by_one([kind], lambda _: act(store, reads), words))


def _one_by_one(
    things: Any, act: Callable[[Any], Any], words: Callable[[Any], str]
) -> Iterator[tuple[Any, dict[str, Any]]]:
    lost = False
    for thing in things:
        if lost:
            yield thing, {"answer": NOT_TRIED, "error": "not tried: the database was lost before"}
            continue
        try:
            change = act(thing)
        except (InvalidInput, Refused) as error:
            yield thing, {"answer": REFUSED, "error": str(error)}
        except InfrastructureError as error:
            lost = True
            yield (
                thing,
                {"answer": UNKNOWN, "error": f"{error}. Nobody knows whether it was done; saying it again is safe"},
            )
        else:
            yield thing, {**_facts(change), "next": words(change)}


def _facts(change: JobChange | KindChange) -> dict[str, Any]:
    if isinstance(change, KindChange):
        return {"answer": change.answer, "paused_until": change.paused_until}
    return {"answer": change.answer, "state": change.state, "stop_reason": change.stop_reason}


def _report(asked: Request, noun: str, results: Iterator[tuple[Any, dict[str, Any]]]) -> None:
    if not asked.as_json:
        print_lines([line(asked.actor.line)])
    told = []
    for thing, result in results:
        told.append({noun: thing, **result})
        if not asked.as_json:
            wrong = result.get("error")
            said = result["next"] if wrong is None else f"{result['answer'].replace('_', ' ')}: {wrong}"
            print_lines([line(f"{noun} {thing}: {said}")])
    failed = sum("error" in result for result in told)
    if asked.as_json:
        print_json(
            {
                "action": asked.action,
                "on": asked.place,
                "actor": asked.actor.name,
                "actor_given": asked.actor.given,
                "reason": asked.reason,
                "results": told,
                "failed": failed,
            }
        )
    elif failed and len(told) > 1:
        print_lines([f"{counted(failed, noun)} of {len(told)} not done."])
    if failed:
        raise typer.Exit(1)
