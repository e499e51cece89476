"""One invocation of a poller: for each of its kinds a tick, the due questions to its receiver if its code can ask, then
claim, run and finish until nothing is due.

What goes wrong with one kind stops only that kind. A database that is away ends the invocation quietly: nothing was
charged, and the next one comes within a minute. Only an occurrence of a schedule comes once: it is waited for.
"""

import random
import time
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from stopline.errors import InfrastructureError, InvalidInput, StoplineError
from stopline.errortext import clean, describe
from stopline.logs import get_logger
from stopline.payload import check_time
from stopline.settings import PollerSettings
from stopline.states import ClaimStatus
from stopline.store.connection import Session
from stopline.store.target import CONNECT_TIMEOUT_SECONDS
from stopline.store.worker import RunSettings, Tick, WorkerStore
from stopline.worker import processes
from stopline.worker.checks import Checks
from stopline.worker.claims import Claims
from stopline.worker.finishing import Finisher
from stopline.worker.inline import run_inline
from stopline.worker.isolated import run_isolated
from stopline.worker.job import Tools
from stopline.worker.loading import KindCode, load_kind
from stopline.worker.supervisor import Supervisor
from stopline.worker.tally import Tally
from stopline.worker.visit import Visit
from stopline.worker.wire import ClientShelf

_LEAVE = frozenset({ClaimStatus.FULL, ClaimStatus.PAUSED, ClaimStatus.BUDGET, ClaimStatus.FOREIGN, ClaimStatus.EMPTY})
_OCCURRENCE_PAUSE = 1.0


class PollFailed(StoplineError):
    """A kind of this poller cannot work. Raised after the others have been served; names each kind and its cause."""


class OccurrenceLost(StoplineError):
    """The database was away for the whole invocation that a schedule started. No other will bring its occurrence."""


class Poller:
    """What stays warm between invocations: the session, the kinds' code, the SDK's models."""

    def __init__(self, settings: PollerSettings) -> None:
        self._settings = settings
        self.session = Session(settings.target)
        self._store = WorkerStore(self.session)
        self._clients = ClientShelf(settings.region)
        # Kinds that share a poller take turns at being first, and cold starts must not all begin with the same one.
        self._turn = random.randrange(len(settings.kinds))
        self._kept_waiting: set[str] = set()
        if text := processes.notice():
            get_logger().warning("isolation_reduced", text=text)

    def poll(self, event: Mapping[str, Any], seconds_left: float, request_id: str) -> dict[str, Any]:
        """Serves every kind. Returns the result line; raises InvalidInput for a bad event and PollFailed at the end."""
        ends = time.monotonic() + seconds_left
        occurrence = _occurrence(event, self._settings.kinds)
        reconnects = self.session.reconnects
        tallies: dict[str, Tally] = {}
        for kind in self._in_turn():
            tallies[kind] = tally = Tally()
            self._serve(kind, occurrence.get(kind), tally, ends, request_id)
        result: dict[str, Any] = {
            "kinds": {kind: tallies[kind].as_dict() for kind in self._settings.kinds},
            "reconnects": self.session.reconnects - reconnects,
            "stopped": _stopped(list(tallies.values())),
        }
        broken = [tally.error for tally in tallies.values() if tally.status == "error"]
        if broken:
            get_logger().error("poll_failed", **result)
            raise PollFailed("; ".join(str(error) for error in broken))
        return result

    def close(self) -> None:
        """Closes the connection."""
        self.session.close()

    def _in_turn(self) -> list[str]:
        kinds = self._settings.kinds
        self._turn = (self._turn + 1) % len(kinds)
        return [*kinds[self._turn :], *kinds[: self._turn]]

    def _serve(self, kind: str, scheduled_for: datetime | None, tally: Tally, ends: float, request_id: str) -> None:
        try:
            self._visit(kind, scheduled_for, tally, ends, request_id)
        except InfrastructureError as error:
            tally.status, tally.error = "unreachable", str(error)
            get_logger().warning("kind_unreachable", kind=kind, error=tally.error)
        except Exception as error:
            tally.status = "error"
            tally.error = (
                clean(str(error)) if isinstance(error, StoplineError) else f"kind {kind}: {describe(error)[1]}"
            )
            get_logger().error("kind_failed", kind=kind, error=tally.error)

    def _visit(self, kind: str, scheduled_for: datetime | None, tally: Tally, ends: float, request_id: str) -> None:
        try:
            code = load_kind(self._settings.jobs_dir, kind)
        except StoplineError:
            # The occurrence waits in the queue for code that works.
            if scheduled_for is not None:
                self._tick(kind, scheduled_for, ends)
            raise
        tick = self._tick(kind, scheduled_for, ends)
        tally.status, tally.tick, tally.note = str(tick.status), tick.counts, tick.note
        if tick.note is not None:
            get_logger().error("source_note", kind=kind, note=tick.note)
        work = tick.status not in _LEAVE
        if not work and code.reconcile is None:
            return
        visit = self._open(code, tick.run, tally, ends, request_id)
        supervisor = Supervisor(code, tick.run, visit.tools, self.session.fileno)
        failed = None if code.reconcile is None else self._ask(visit, supervisor, request_id, work)
        if work and visit.run.isolation == "inline":
            run_inline(visit)
        elif work:
            run_isolated(visit, supervisor)
        if failed is not None:
            raise failed

    def _ask(self, visit: Visit, supervisor: Supervisor, request_id: str, work: bool) -> Exception | None:
        """Puts the kind's due questions. Returns what kept it from asking: the kind's jobs run all the same.

        Where there is `work`, questions begin in the first half of the time in which an attempt could still begin. If
        they left no time for one, the next invocation of this process goes to work first.
        """
        kind = visit.code.kind
        if work and kind in self._kept_waiting:
            self._kept_waiting.discard(kind)
            return None
        room = visit.seconds_left - visit.needed
        checks = Checks(
            visit,
            self._worker(request_id),
            self._settings.installation,
            time.monotonic() + (room / 2 if work else room),
        )
        try:
            if visit.run.isolation == "inline":
                checks.ask_inline()
            else:
                checks.ask_isolated(supervisor)
        except Exception as error:
            get_logger().error("checks_failed", kind=kind, error=describe(error)[1])
            return error
        if work and visit.seconds_left < visit.needed:
            self._kept_waiting.add(kind)
        return None

    def _worker(self, request_id: str) -> str:
        return f"{self._settings.worker}/{request_id}"

    def _tick(self, kind: str, scheduled_for: datetime | None, ends: float) -> Tick:
        """Ticks. A schedule fires once, so an occurrence is tried again while there is time. Raises OccurrenceLost."""
        while True:
            try:
                return self._store.tick(kind, scheduled_for)
            except InfrastructureError as error:
                if scheduled_for is None:
                    raise
                if time.monotonic() + _OCCURRENCE_PAUSE + CONNECT_TIMEOUT_SECONDS > ends:
                    raise OccurrenceLost(
                        f"kind {kind}: its occurrence of {scheduled_for.isoformat()} was not enqueued: {error}. "
                        "Invoke the poller again with the same event; a second time does no harm"
                    ) from error
                get_logger().warning("occurrence_waits", kind=kind, error=str(error))
            time.sleep(_OCCURRENCE_PAUSE)

    def _open(self, code: KindCode, run: RunSettings, tally: Tally, ends: float, request_id: str) -> Visit:
        settings = self._settings
        role = settings.roles.get(code.kind)
        tools = Tools(
            clients=self._clients,
            target=None if role is None else replace(settings.target, user=role),
            environment=settings.environment,
        )
        finisher = Finisher(code.kind, self._store, tally, ends)
        claims = Claims(code.kind, self._store, self._worker(request_id), settings.installation, finisher, tally)
        return Visit(code, run, self._store, tools, claims, finisher, tally, ends)


def _occurrence(event: Mapping[str, Any], kinds: tuple[str, ...]) -> dict[str, datetime]:
    """The scheduled time of the one kind that this event enqueues, if it enqueues one."""
    kind = event.get("enqueue")
    if kind is None:
        return {}
    if kind not in kinds:
        raise InvalidInput("enqueue", f"{kind!r} is not a kind of this poller ({', '.join(kinds)})")
    text = event.get("scheduled_for")
    if not isinstance(text, str):
        raise InvalidInput("scheduled_for", f"must be an ISO 8601 time with a zone, not {text!r}")
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidInput("scheduled_for", f"must be an ISO 8601 time with a zone, not {text[:60]!r}") from None
    return {kind: check_time("scheduled_for", when)}


def _stopped(tallies: list[Tally]) -> str:
    """Why the invocation ended, in one word."""
    statuses = {tally.status for tally in tallies}
    for word in ("error", "unreachable"):
        if word in statuses:
            return word
    if any(tally.out_of_time for tally in tallies):
        return "time"
    return statuses.pop() if len(statuses) == 1 else "empty"
