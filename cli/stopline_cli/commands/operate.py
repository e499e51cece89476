"""`stopline cancel`, `replay`, `reconcile`, `ack` and `release-key`: what people do to jobs."""

from typing import Annotated

import typer

from stopline.store.operate import JobChange, OperateStore
from stopline.store.reads import ReadStore
from stopline_cli import aftermath
from stopline_cli.actions import on_jobs, request
from stopline_cli.options import Actor, EffectsChecked, Jobs, Json, Local, On, Place, Reason
from stopline_cli.times import given_moment

Checked = Annotated[
    str | None,
    typer.Option("--effects-checked", help="Of an uncertain job: how it was made sure what became of its effect."),
]
Applied = Annotated[
    bool, typer.Option("--applied/--not-applied", help="What was found: the effect exists, or it does not.")
]
Deadline = Annotated[
    str | None,
    typer.Option("--deadline", metavar="TIME|SPAN", help="A new deadline, for jobs whose own has passed."),
]


def cancel(
    jobs: Jobs,
    reason: Reason,
    effects_checked: Checked = None,
    actor: Actor = None,
    on: On = Place.LOCAL,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Stop jobs for good. Of a running one it is a request that its attempt decides."""
    asked = request("cancel", actor, reason, on, local, as_json)

    def act(store: OperateStore, _: ReadStore, job: int) -> JobChange:
        return store.cancel(job, asked.actor.name, reason, effects_checked)

    on_jobs(asked, jobs, act, aftermath.cancelled)


def replay(
    jobs: Jobs,
    reason: Reason,
    effects_checked: EffectsChecked,
    deadline: Deadline = None,
    actor: Actor = None,
    on: On = Place.LOCAL,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Run stopped jobs again, in a new round. Where the kind can ask its receiver, that is done first."""
    asked = request("replay", actor, reason, on, local, as_json)

    def act(store: OperateStore, reads: ReadStore, job: int) -> JobChange:
        ends = None if deadline is None else given_moment("--deadline", deadline, reads.now(), 1)
        return store.replay(job, asked.actor.name, reason, effects_checked, ends)

    on_jobs(asked, jobs, act, aftermath.replayed)


def reconcile(
    jobs: Jobs,
    applied: Applied,
    reason: Reason,
    effects_checked: EffectsChecked,
    actor: Actor = None,
    on: On = Place.LOCAL,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Settle jobs whose outcome nobody knows: say whether the effect exists."""
    asked = request("reconcile", actor, reason, on, local, as_json)

    def act(store: OperateStore, _: ReadStore, job: int) -> JobChange:
        return store.reconcile(job, asked.actor.name, reason, effects_checked, applied=applied)

    on_jobs(asked, jobs, act, aftermath.reconciled)


def ack(
    jobs: Jobs,
    reason: Reason,
    actor: Actor = None,
    on: On = Place.LOCAL,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Say that abandoned jobs were seen. It changes nothing else: they go on holding their keys."""
    asked = request("ack", actor, reason, on, local, as_json)

    def act(store: OperateStore, _: ReadStore, job: int) -> JobChange:
        return store.acknowledge(job, asked.actor.name, reason)

    on_jobs(asked, jobs, act, aftermath.acknowledged)


def release_key(
    jobs: Jobs,
    reason: Reason,
    actor: Actor = None,
    on: On = Place.LOCAL,
    local: Local = False,
    as_json: Json = False,
) -> None:
    """Let the keys of stopped jobs go, so that new work may have them."""
    asked = request("release-key", actor, reason, on, local, as_json)

    def act(store: OperateStore, _: ReadStore, job: int) -> JobChange:
        return store.release_key(job, asked.actor.name, reason)

    on_jobs(asked, jobs, act, aftermath.key_released)
