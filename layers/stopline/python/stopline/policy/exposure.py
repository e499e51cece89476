"""The most that one round of one job can cost, worked out before it runs."""

from dataclasses import dataclass
from decimal import Decimal

from stopline.policy.model import Policy


@dataclass(frozen=True)
class WorstCase:
    """The bound of one round: attempts, paid calls, US dollars (None if no price is set), and how it was worked out."""

    attempts: int
    calls: int
    usd: Decimal | None
    working: str


def worst_case(policy: Policy) -> WorstCase:
    """The most attempts, calls and money that a round of a job of this kind can take."""
    attempts = policy.limits.max_attempts
    steps = policy.agent.max_steps or 0
    calls = attempts * policy.cost.calls_per_attempt + steps
    price = policy.cost.per_attempt_usd
    if price is None:
        return WorstCase(attempts, calls, None, _calls_only(policy, calls))
    step_price = policy.agent.per_step_usd or Decimal(0)
    total = attempts * price + steps * step_price
    ceiling = policy.cost.per_job_usd
    usd = total if ceiling is None else min(total, ceiling)
    working = _attempts_term(policy, price)
    if steps and step_price:
        working += f" + {_count(steps, 'step')} x {dollars(step_price)}"
    if usd < total:
        working += f" = {dollars(total)}, ended by per_job_usd: at most {dollars(usd)} a round"
    else:
        working += f" = at most {dollars(usd)} a round"
    return WorstCase(attempts, calls, usd, working)


def dollars(amount: Decimal) -> str:
    """An amount with as many decimals as it needs, two at least: $1.00, $0.000125."""
    decimals = max(2, -int(amount.normalize().as_tuple().exponent)) if amount else 2
    return f"${amount:,.{decimals}f}"


def _attempts_term(policy: Policy, price: Decimal) -> str:
    """A price is one attempt's, whatever number of calls it makes: that is what a claim reserves."""
    attempts, calls = policy.limits.max_attempts, policy.cost.calls_per_attempt
    if calls == 1:
        return f"{_count(attempts, 'attempt')} x 1 call x {dollars(price)}"
    return f"{_count(attempts, 'attempt')} x {dollars(price)} ({_count(calls, 'call')} each)"


def _calls_only(policy: Policy, calls: int) -> str:
    attempts = policy.limits.max_attempts
    working = f"{_count(attempts, 'attempt')} x {_count(policy.cost.calls_per_attempt, 'call')}"
    if policy.agent.max_steps:
        working += f" + {_count(policy.agent.max_steps, 'step')}"
    return f"{working} = at most {_count(calls, 'call')} a round; no price is set (per_attempt_usd in [cost])"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
