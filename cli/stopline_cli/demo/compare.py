"""Holds what came of the demo against what had to. Every difference has a name."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from decimal import Decimal

from stopline.states import State
from stopline_cli.demo.expect import Check, Ending
from stopline_cli.demo.found import Found, FoundCheck, FoundJob
from stopline_cli.demo.scenario import EXPORT
from stopline_cli.demo.work import Work

Expected = Mapping[Work, tuple[Ending, ...]]


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that is not as it had to be."""

    job: str
    what: str
    expected: str
    found: str

    def as_json(self) -> dict[str, str]:
        return asdict(self)

    def __str__(self) -> str:
        return f"{self.job}: {self.what}: expected {self.expected}, found {self.found}"


def differences(expected: Expected, found: Found) -> list[Difference]:
    """All of them, job by job, then those of whole kinds."""
    return [*_of_jobs(expected, found), *_of_kinds(expected, found)]


def _of_jobs(expected: Expected, found: Found) -> Iterator[Difference]:
    jobs: dict[tuple[str, str], list[FoundJob]] = {}
    for job in found.jobs:
        jobs.setdefault((job.kind, job.key), []).append(job)
    for work, endings in expected.items():
        mine = jobs.pop((work.kind, work.key), [])
        if len(mine) != 1:
            yield Difference(work.key, "jobs", "1", str(len(mine)))
        for job in mine:
            # Where several endings are right, the one that is nearest tells most.
            yield from min((list(_of_job(ending, work, job)) for ending in endings), key=len)
    for kind, key in jobs:
        yield Difference(key, "jobs", "0", f"one of kind {kind}")


def _of_job(ending: Ending, work: Work, job: FoundJob) -> Iterator[Difference]:
    outcomes = ", ".join(attempt.outcome for attempt in ending.attempts)
    pairs: list[tuple[str, object, object]] = [
        ("state", ending.state, job.state),
        ("stop reason", ending.stop_reason or "none", job.stop_reason or "none"),
        ("attempts", outcomes, ", ".join(attempt.outcome for attempt in job.attempts)),
        ("calls at the receiver", ending.calls, job.calls),
        ("calls that the receiver carried out", ending.taken, job.taken),
        ("answers of the receiver", _words(ending.checks), _words(job.checks)),
        ("questions at the receiver", len(ending.checks), job.lookups),
        ("next question", "none", job.next_check_at or "none"),
    ]
    if work.kind == EXPORT:
        stored = job.effect_key if ending.taken else "none"
        pairs.append(("stored under the reference", stored, ", ".join(job.effects) or "none"))
    yield from (Difference(work.key, what, str(this), str(that)) for what, this, that in pairs if this != that)
    for number, (must, did) in enumerate(zip(ending.attempts, job.attempts, strict=False), 1):
        if must.says not in did.reason:
            yield Difference(work.key, f"reason of attempt {number}", f"one that names {must.says}", did.reason)
        if did.usd not in must.usd:
            bounds = f"${must.usd.low} to ${must.usd.high}"
            yield Difference(work.key, f"price of attempt {number}", bounds, f"${did.usd}")
    for number, (asked, answered) in enumerate(zip(ending.checks, job.checks, strict=False), 1):
        if asked.says not in answered.detail:
            yield Difference(work.key, f"reason of question {number}", f"one that names {asked.says}", answered.reason)
    if ending.state is State.UNCERTAIN and job.review_by is None:
        yield Difference(work.key, "review by", "a time", "none")


def _words(checks: Iterable[Check | FoundCheck]) -> str:
    return ", ".join(check.answer for check in checks) or "none"


def _of_kinds(expected: Expected, found: Found) -> Iterator[Difference]:
    for attempt in found.doubled:
        yield Difference(attempt, "requests on the wire", "at most 1", "more")
    for kind in dict.fromkeys(work.kind for work in expected):
        mine = [job for job in found.jobs if job.kind == kind]
        calls = sum(job.calls for job in mine)
        if found.calls.get(kind, 0) != calls:
            yield Difference(
                kind, "calls at the receiver", f"{calls}, those of its jobs", str(found.calls.get(kind, 0))
            )
        lookups = sum(job.lookups for job in mine)
        if found.lookups.get(kind, 0) != lookups:
            told = str(found.lookups.get(kind, 0))
            yield Difference(kind, "questions at the receiver", f"{lookups}, those about its jobs", told)
        spent = sum((job.usd for job in mine), Decimal(0))
        if found.spend.get(kind, Decimal(0)) != spent:
            yield Difference(
                kind, "money in the ledger", f"${spent}, the sum of its attempts", f"${found.spend.get(kind)}"
            )
