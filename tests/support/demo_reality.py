"""A reality for the demo that is just as its model expects, for tests to spoil."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from stopline.policy import Policy, load_policies, overlay
from stopline.states import State
from stopline_cli.demo.breaker import plan
from stopline_cli.demo.cast import the_works
from stopline_cli.demo.compare import Difference
from stopline_cli.demo.expect import Attempt, Ending, expected_endings
from stopline_cli.demo.figures import figures
from stopline_cli.demo.found import Found, FoundAttempt, FoundCheck, FoundJob
from stopline_cli.demo.outage import Outage
from stopline_cli.demo.performance import Performance, changes
from stopline_cli.demo.scenario import CLOSE, EXPORT, INCIDENT, OUTAGE, OUTAGE_BATCHES, OVERLAY, YEAR
from stopline_cli.demo.work import Work
from stopline_cli.demo.year import MONTHS, Tick, Year, stopped_and_returned
from stopline_cli.local.prepare import JOBS

START = "2026-01-05T08:00:00+00:00"


def demo_policies(cap: int | None = None) -> dict[str, Policy]:
    """The shipped policies under the demo's overlay."""
    shipped = load_policies(JOBS)
    changed = changes(cap)
    return {kind: overlay(shipped[kind], changed[kind]) for kind in OVERLAY}


def demo_expected(cap: int | None = None) -> dict[Work, tuple[Ending, ...]]:
    """What must come of every piece of work."""
    policies = demo_policies(cap)
    return {work: expected_endings(work, policies[work.kind]) for work in the_works()}


def as_expected(expected: Mapping[Work, tuple[Ending, ...]]) -> Found:
    """A database and stand-ins that agree with the first right ending of each work."""
    jobs = [_job(number, work, endings[0]) for number, (work, endings) in enumerate(expected.items(), 1)]
    return with_totals(Found(tuple(jobs), {}, {}, ()))


def with_totals(found: Found) -> Found:
    """The same jobs, with the ledger and the stand-ins' counts that belong to them."""
    kinds = {job.kind for job in found.jobs}
    spend = {kind: sum((job.usd for job in found.jobs if job.kind == kind), Decimal(0)) for kind in kinds}
    calls = {kind: sum(job.calls for job in found.jobs if job.kind == kind) for kind in kinds}
    lookups = {kind: sum(job.lookups for job in found.jobs if job.kind == kind) for kind in kinds}
    return replace(found, spend=spend, calls=calls, lookups=lookups)


def spoiled(found: Found, key: str, **changed: object) -> Found:
    """The same reality with one job that is different."""
    jobs = tuple(replace(job, **changed) if job.key == key else job for job in found.jobs)  # type: ignore[arg-type]
    return with_totals(replace(found, jobs=jobs))


def job_of(found: Found, key: str) -> FoundJob:
    """The job with this key."""
    (job,) = (job for job in found.jobs if job.key == key)
    return job


def performed(found: Found, differing: list[Difference]) -> Performance:
    """A run of three simulated hours that ended with this reality."""
    lasted = timedelta(hours=3)
    kinds = [figures(policy, the_works(), found, lasted) for policy in demo_policies().values()]
    return Performance(
        kinds=kinds,
        expected=demo_expected(),
        differing=differing,
        since=lambda text: timedelta(),
        lasted=lasted,
        seconds=1.0,
        outage=outage_as_expected(),
        year=year_as_expected(),
        passed=YEAR,
    )


def year_as_expected() -> Year:
    """A year in which nothing happened any more."""
    found = as_expected(demo_expected())
    incident = job_of(found, INCIDENT)
    held = len(stopped_and_returned(the_works(), found.jobs))
    return Year(
        policy=demo_policies()[CLOSE],
        key=INCIDENT,
        ticks=tuple(Tick(minute, created=0, held=held, claimed=0, changed=False, open=0) for minute in (400, 401)),
        held=held,
        before=incident.calls,
        calls=incident.calls,
        calls_since=0,
        spent=incident.usd,
        state=incident.state,
        stop_reason=incident.stop_reason,
        acknowledged=held,
        said_again=held * MONTHS,
    )


def outage_as_expected() -> Outage:
    """An outage that went as the breaker's rules say."""
    policy = demo_policies()[EXPORT]
    must = plan(policy, len(OUTAGE_BATCHES), OUTAGE)
    return Outage(
        policy=policy,
        expected=must,
        calls=must.calls,
        taken=must.jobs,
        paused=must.paused,
        states={"succeeded": must.jobs},
        attempts=must.total,
        events=must.events,
    )


def _job(number: int, work: Work, ending: Ending) -> FoundJob:
    effect_key = f"demo-{number}"
    return FoundJob(
        id=number,
        kind=work.kind,
        key=work.key,
        state=ending.state,
        stop_reason=ending.stop_reason,
        effect_key=effect_key,
        max_attempts=5,
        attempts=tuple(_attempt(attempt) for attempt in ending.attempts),
        calls=ending.calls,
        taken=ending.taken,
        effects=(effect_key,) if work.kind == EXPORT and ending.taken else (),
        checks=tuple(FoundCheck(check.answer, f"{check.says} was answered", START) for check in ending.checks),
        lookups=len(ending.checks),
        review_by=START if ending.state is State.UNCERTAIN else None,
    )


def _attempt(attempt: Attempt) -> FoundAttempt:
    return FoundAttempt(attempt.outcome, attempt.says, f"{attempt.says} happened", attempt.usd.high, START)
