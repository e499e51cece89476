"""What came of the demo: jobs and attempts from the database, calls and effects from the stand-ins."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from stopline.states import Outcome, State, StopReason
from stopline_cli.demo.scenario import CLOSE, EXPORT
from stopline_cli.demo.stage import Database, Stage
from stopline_cli.demo.work import Work

_DOTTED_CLASS = re.compile(r"\A(?:\w+\.)+\w+: ")
_AWS_PREAMBLE = re.compile(r"\AAn error occurred \(\w+\) when calling the \w+ operation(?: \([^)]*\))?: ")


@dataclass(frozen=True, slots=True)
class FoundAttempt:
    """One attempt as the database has it. `started_at` is ISO text."""

    outcome: Outcome
    error_class: str
    error: str
    usd: Decimal
    started_at: str

    @property
    def reason(self) -> str:
        """Its error in a line: the class once, without the module that it lives in and what AWS says every time."""
        told = _AWS_PREAMBLE.sub("", _DOTTED_CLASS.sub("", self.error.strip())).partition("\n")[0]
        return told if not self.error_class or told.startswith(self.error_class) else f"{self.error_class}: {told}"


@dataclass(frozen=True, slots=True)
class FoundJob:
    """One job with what its receiver has of it. `effects` are the references under which a batch is stored."""

    id: int
    kind: str
    key: str
    state: State
    stop_reason: StopReason | None
    effect_key: str
    max_attempts: int
    attempts: tuple[FoundAttempt, ...]
    calls: int = 0
    taken: int = 0
    effects: tuple[str, ...] = ()

    @property
    def usd(self) -> Decimal:
        """What its attempts cost."""
        return sum((attempt.usd for attempt in self.attempts), Decimal(0))


@dataclass(frozen=True, slots=True)
class Found:
    """Everything. `spend` is the database's ledger of money by kind, `calls` all requests at the stand-ins by kind."""

    jobs: tuple[FoundJob, ...]
    spend: Mapping[str, Decimal]
    calls: Mapping[str, int]
    doubled: tuple[str, ...]
    """Attempts that put more than one request on the wire."""


def find(stage: Stage, works: Iterable[Work]) -> Found:
    """Reads it all, once nothing runs any more."""
    receivers = {CLOSE: stage.bedrock.calls(), EXPORT: stage.connector.calls()}
    markers = {(work.kind, work.key): work.marker for work in works}
    jobs = tuple(_job(shown, markers, receivers) for shown in _shown(stage.database))
    return Found(
        jobs,
        _spend(stage.database),
        {kind: state["total"] for kind, state in receivers.items()},
        tuple(_doubled(receivers[CLOSE]["calls"])),
    )


def _shown(database: Database) -> Iterator[dict[str, Any]]:
    for job in sorted(database.reads.jobs(limit=1000), key=lambda job: int(job["id"])):
        shown = database.reads.job(job["id"])
        if shown is not None:
            yield shown


def _job(
    shown: Mapping[str, Any],
    markers: Mapping[tuple[str, str], str | None],
    receivers: Mapping[str, Mapping[str, Any]],
) -> FoundJob:
    job = shown["job"]
    receiver = receivers[job["kind"]]
    marker = markers.get((job["kind"], job["key"]))
    counted = receiver["by_marker"].get(marker, {"calls": 0, "accepted": 0})
    stored = receiver.get("batches", {}).values()
    return FoundJob(
        id=job["id"],
        kind=job["kind"],
        key=job["key"],
        state=State(job["state"]),
        stop_reason=None if job["stop_reason"] is None else StopReason(job["stop_reason"]),
        effect_key=job["effect_key"],
        max_attempts=job["max_attempts"],
        attempts=tuple(_attempt(attempt) for attempt in shown["attempts"]),
        calls=counted["calls"],
        taken=counted["accepted"],
        effects=tuple(batch["reference"] for batch in stored if marker in batch["invoice_ids"]),
    )


def _attempt(row: Mapping[str, Any]) -> FoundAttempt:
    return FoundAttempt(
        Outcome(row["outcome"]),
        row["error_class"] or "",
        row["error"] or "",
        Decimal(str(row["cost_usd"])),
        row["started_at"],
    )


def _spend(database: Database) -> dict[str, Decimal]:
    rows = database.admin.execute("select kind, sum(usd) from stopline.spend group by kind").fetchall()
    return dict(rows)


def _doubled(calls: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    seen = set()
    for call in calls:
        metadata = call["details"].get("metadata") or {}
        attempt = (metadata.get("stopline_job"), metadata.get("stopline_attempt"))
        if attempt in seen:
            yield f"attempt {attempt[1]} of job {attempt[0]}"
        seen.add(attempt)
