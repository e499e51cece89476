"""What came of the demo: jobs and attempts from the database, calls and effects from the stand-ins."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from stopline.states import Outcome, ReceiverAnswer, State, StopReason
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
class FoundCheck:
    """One question to the receiver as the database has it. `asked_at` is ISO text."""

    answer: ReceiverAnswer
    detail: str
    asked_at: str

    @property
    def reason(self) -> str:
        """Its detail in a line."""
        return _DOTTED_CLASS.sub("", self.detail.strip()).partition("\n")[0]


@dataclass(frozen=True, slots=True)
class FoundJob:
    """One job with what its receiver has of it. `effects` are the references under which a batch is stored, `lookups`
    the questions that reached the receiver. `next_check_at` and `review_by` are ISO text."""

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
    checks: tuple[FoundCheck, ...] = ()
    lookups: int = 0
    next_check_at: str | None = None
    review_by: str | None = None

    @property
    def usd(self) -> Decimal:
        """What its attempts cost."""
        return sum((attempt.usd for attempt in self.attempts), Decimal(0))


@dataclass(frozen=True, slots=True)
class Found:
    """Everything. `spend` is the database's ledger of money by kind, `calls` all requests for work at the stand-ins by
    kind, `lookups` all that only ask."""

    jobs: tuple[FoundJob, ...]
    spend: Mapping[str, Decimal]
    calls: Mapping[str, int]
    doubled: tuple[str, ...]
    """Attempts that put more than one request on the wire."""
    lookups: Mapping[str, int] = field(default_factory=dict)


def find(stage: Stage, works: Iterable[Work]) -> Found:
    """Reads it all, once nothing runs any more."""
    bedrock, connector = stage.bedrock.calls(), stage.connector.calls()
    receivers = {CLOSE: bedrock["calls"], EXPORT: connector["calls"]}
    stored = list(connector["batches"].values())
    markers = {(work.kind, work.key): work.marker for work in works}
    jobs = tuple(_job(shown, markers, receivers, stored) for shown in _shown(stage.database))
    asked = {kind: sum(map(_only_asks, calls)) for kind, calls in receivers.items()}
    return Found(
        jobs,
        _spend(stage.database),
        {kind: len(calls) - asked[kind] for kind, calls in receivers.items()},
        tuple(_doubled(receivers[CLOSE])),
        asked,
    )


def _shown(database: Database) -> Iterator[dict[str, Any]]:
    for job in sorted(database.reads.jobs(limit=1000), key=lambda job: int(job["id"])):
        shown = database.reads.job(job["id"])
        if shown is not None:
            yield shown


def _job(
    shown: Mapping[str, Any],
    markers: Mapping[tuple[str, str], str | None],
    receivers: Mapping[str, Sequence[Mapping[str, Any]]],
    stored: Sequence[Mapping[str, Any]],
) -> FoundJob:
    job = shown["job"]
    marker = markers.get((job["kind"], job["key"]))
    # A question about a batch that is not stored bears its reference.
    mine = [call for call in receivers[job["kind"]] if call["marker"] in (marker, job["effect_key"])]
    work = [call for call in mine if not _only_asks(call)]
    return FoundJob(
        id=job["id"],
        kind=job["kind"],
        key=job["key"],
        state=State(job["state"]),
        stop_reason=None if job["stop_reason"] is None else StopReason(job["stop_reason"]),
        effect_key=job["effect_key"],
        max_attempts=job["max_attempts"],
        attempts=tuple(_attempt(attempt) for attempt in shown["attempts"]),
        calls=len(work),
        taken=sum(call["accepted"] for call in work),
        effects=tuple(batch["reference"] for batch in stored if marker in batch["invoice_ids"]),
        checks=tuple(
            FoundCheck(ReceiverAnswer(check["answer"]), check["detail"] or "", check["asked_at"])
            for check in shown["checks"]
        ),
        lookups=len(mine) - len(work),
        next_check_at=job["next_check_at"],
        review_by=job["review_by"],
    )


def _only_asks(call: Mapping[str, Any]) -> bool:
    """Whether a call at a stand-in asks for no work."""
    return bool(call["operation"] == "lookup")


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
