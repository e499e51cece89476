"""Rules that no single key can break: between the keys of a policy, and between kinds that share a poller."""

from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from decimal import Decimal
from zoneinfo import ZoneInfo, available_timezones

from stopline.durations import format_duration
from stopline.errors import PolicyError
from stopline.limits import LAMBDA_TIMEOUT_SECONDS
from stopline.policy.keys import declared_keys
from stopline.policy.model import Policy
from stopline.policy.sections import OWN_POLLER

Broken = tuple[str, str]
"""The key to change, and the rule with its fix."""

_SHARED = ("run.every", "run.poller_timeout", "run.memory_mb", "run.children", "access.egress")
"""Keys that describe the poller itself, so that kinds sharing it must say the same."""


def check_policy(policy: Policy) -> None:
    """Raise `PolicyError` for the first rule that the policy breaks."""
    for rule in _RULES:
        for key, text in rule(policy):
            raise PolicyError(policy.file, key, text)


def check_together(policies: Mapping[str, Policy]) -> None:
    """Raise `PolicyError` where kinds that share a poller disagree about it."""
    first: dict[str, Policy] = {}
    for policy in policies.values():
        shared = policy.run.poller
        if shared == OWN_POLLER:
            continue
        namesake = policies.get(shared)
        if namesake is not None and namesake.run.poller == OWN_POLLER:
            fix = f'set poller = "{shared}" in [run] of {shared} too, or choose another name'
            raise PolicyError(policy.file, "run.poller", f'"{shared}" is a kind with a poller of its own; {fix}')
        other = first.setdefault(shared, policy)
        _check_agreement(policy, other)


def _check_agreement(policy: Policy, other: Policy) -> None:
    for key in declared_keys(Policy):
        if key.name not in _SHARED:
            continue
        mine, theirs = (each.value(key.section, key.attribute) for each in (policy, other))
        if mine != theirs:
            raise PolicyError(
                policy.file,
                key.name,
                f'is {_text(mine)}, but {other.name} shares the poller "{policy.run.poller}" and says {_text(theirs)}; '
                f"make them equal",
            )


def _attempt_fits(policy: Policy) -> Iterator[Broken]:
    """An attempt with its margin fits into the poller's Lambda, and that into the longest Lambda."""
    longest = timedelta(seconds=LAMBDA_TIMEOUT_SECONDS)
    if policy.lease > longest:
        room = format_duration(longest - policy.run.margin)
        yield (
            "run.timeout",
            f"{_sum(policy)}, above the {format_duration(longest)} that a Lambda may run; lower it to {room} or less",
        )
    if policy.run.poller_timeout < policy.lease:
        yield (
            "run.poller_timeout",
            f"{_text(policy.run.poller_timeout)} has no room for an attempt: {_sum(policy)}; raise it to that or more",
        )


def _attempt_fits_limits(policy: Policy) -> Iterator[Broken]:
    """A limit that ends every job before its first attempt could is a mistake."""
    for name in ("max_elapsed", "deadline"):
        limit = policy.value("limits", name)
        if limit is not None and limit < policy.lease:
            yield f"limits.{name}", f"{format_duration(limit)} has no room for an attempt: {_sum(policy)}; raise it"
    elapsed = policy.limits.max_elapsed
    if elapsed is not None and elapsed <= policy.breaker.max_cooldown:
        cooldown = format_duration(policy.breaker.max_cooldown)
        yield (
            "limits.max_elapsed",
            f"{format_duration(elapsed)} must be above breaker.max_cooldown ({cooldown}), or one pause ends every job; "
            f"raise it or lower max_cooldown in [breaker]",
        )


def _isolation(policy: Policy) -> Iterator[Broken]:
    """Without a process for each attempt a crash cannot be pinned on one job, so innocent ones must survive it."""
    run = policy.run
    if run.isolation == "process":
        if run.batch > 1:
            yield "run.batch", 'above 1 needs isolation = "inline" in [run]; a process runs one job'
        return
    why = "inline isolation cannot tell which job of a batch crashed"
    if not policy.idempotent:
        yield "run.isolation", f'"inline" needs idempotent = true: {why}; use "process"'
    if policy.limits.max_attempts < 3:
        yield "run.isolation", f'"inline" needs limits.max_attempts of 3 or more: {why}; raise it or use "process"'
    if policy.limits.max_crashes < 2:
        yield "run.isolation", f'"inline" needs limits.max_crashes of 2 or more: {why}; raise it or use "process"'
    if run.children > 1:
        yield "run.children", 'above 1 needs isolation = "process"; inline runs jobs one after another'


def _order(policy: Policy) -> Iterator[Broken]:
    """Pairs of which the first must not exceed the second."""
    pairs = (
        ("retry.base", "retry.cap"),
        ("breaker.cooldown", "breaker.max_cooldown"),
        ("reconcile.settle", "reconcile.review_within"),
        ("run.children", "run.concurrency"),
        ("cost.per_attempt_usd", "cost.per_job_usd"),
        ("cost.per_attempt_usd", "cost.daily_budget_usd"),
        ("cost.per_job_usd", "cost.daily_budget_usd"),
    )
    for small, large in pairs:
        low, high = policy.value(*small.split(".")), policy.value(*large.split("."))
        if low is not None and high is not None and low > high:
            yield small, f"{_text(low)} must not be above {large}, which is {_text(high)}; lower it or raise that"


def _money(policy: Policy) -> Iterator[Broken]:
    """A budget that nothing is reserved against stops nothing."""
    if policy.cost.per_attempt_usd is None:
        for key in ("cost.per_job_usd", "cost.daily_budget_usd", "agent.per_step_usd"):
            if policy.value(*key.split(".")) is not None:
                yield key, "needs per_attempt_usd in [cost], the amount that each claim reserves; 0 is allowed"
    price = (policy.cost.per_attempt_usd or Decimal(0)) + (policy.agent.per_step_usd or Decimal(0))
    for key in ("cost.per_job_usd", "cost.daily_budget_usd"):
        budget = policy.value(*key.split("."))
        if policy.agent.per_step_usd is not None and budget is not None and price > budget:
            what = f"per_attempt_usd + per_step_usd = {_text(price)}"
            yield key, f"{_text(budget)} does not pay an attempt with one step ({what}); raise it"
    if policy.agent.per_step_usd is not None and policy.agent.max_steps is None:
        yield "agent.per_step_usd", "needs max_steps in [agent], or the worst case has no bound"


def _access(policy: Policy) -> Iterator[Broken]:
    """A right without the way to use it is a mistake in one of the two."""
    if policy.access.bedrock_models and policy.access.egress == "none":
        yield "access.bedrock_models", 'needs egress = "bedrock" or "internet" in [access]'


def _schedule(policy: Policy) -> Iterator[Broken]:
    """A time zone must exist, and is of use for a schedule only."""
    if policy.enqueue.schedule is None and "timezone" in policy.declared.get("enqueue", {}):
        yield "enqueue.timezone", "needs schedule in [enqueue]; remove it or add one"
    try:
        ZoneInfo(policy.enqueue.timezone)
    except (OSError, ValueError, KeyError):
        # Where no database is installed nothing can be said; the deploy that wrote the row had one.
        if available_timezones():
            yield "enqueue.timezone", f'"{policy.enqueue.timezone}" is not a time zone; use one such as "Europe/Berlin"'


_RULES: tuple[Callable[[Policy], Iterator[Broken]], ...] = (
    _attempt_fits,
    _attempt_fits_limits,
    _isolation,
    _order,
    _money,
    _access,
    _schedule,
)


def _sum(policy: Policy) -> str:
    parts = f"{format_duration(policy.run.timeout)} + {format_duration(policy.run.margin)}"
    return f"timeout + margin = {parts} = {format_duration(policy.lease)}"


def _text(value: object) -> str:
    if isinstance(value, timedelta):
        return format_duration(value)
    return f"${value:,.2f}" if isinstance(value, Decimal) and value == round(value, 2) else str(value)
