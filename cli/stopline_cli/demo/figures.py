"""The demo's figures by kind, and beside them what a loop without a stop line would have done in the same time."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from stopline.policy import Policy, worst_case
from stopline.policy.exposure import dollars
from stopline_cli.demo.found import Found, FoundJob
from stopline_cli.demo.work import Work
from stopline_cli.words import counted, span


@dataclass(frozen=True, slots=True)
class Uncapped:
    """A loop that calls once per poll until a call goes well. `usd` is at per_attempt_usd, the price that the policy
    gives, and `as_recorded` at what the calls that were made did cost; None for a kind without a price."""

    calls: int
    usd: Decimal | None
    as_recorded: Decimal | None
    working: str


@dataclass(frozen=True, slots=True)
class Figures:
    """One kind. `without_call` counts attempts that ended before they called anybody, `checks` what receivers were
    asked."""

    policy: Policy
    jobs: tuple[FoundJob, ...]
    calls: int
    spent: Decimal
    uncapped: Uncapped

    @property
    def states(self) -> dict[str, int]:
        """Jobs by state."""
        return dict(sorted(Counter(str(job.state) for job in self.jobs).items()))

    @property
    def stop_reasons(self) -> dict[str, int]:
        """Stopped jobs by stop reason."""
        return dict(sorted(Counter(str(job.stop_reason) for job in self.jobs if job.stop_reason).items()))

    @property
    def attempts(self) -> int:
        """Attempts in the database."""
        return sum(len(job.attempts) for job in self.jobs)

    @property
    def without_call(self) -> int:
        return sum(len(job.attempts) - job.calls for job in self.jobs)

    @property
    def checks(self) -> int:
        return sum(len(job.checks) for job in self.jobs)

    @property
    def worst_case(self) -> Decimal | None:
        """The most that all its jobs together could have cost, known before the first ran."""
        usd = worst_case(self.policy).usd
        return None if usd is None else usd * len(self.jobs)


def figures(policy: Policy, works: Iterable[Work], found: Found, lasted: timedelta) -> Figures:
    """The figures of one kind over a simulated span."""
    mine = tuple(job for job in found.jobs if job.kind == policy.name)
    own = [work for work in works if work.kind == policy.name]
    spent = found.spend.get(policy.name, Decimal(0))
    return Figures(policy, mine, found.calls[policy.name], spent, _uncapped(policy, own, mine, lasted))


def _uncapped(policy: Policy, works: Sequence[Work], jobs: Sequence[FoundJob], lasted: timedelta) -> Uncapped:
    polls = lasted // policy.run.every + 1
    poison = {work.key for work in works if work.marker is not None and work.calls_until_fine is None}
    calls = len(poison) * polls + sum(min(work.calls_until_fine, polls) for work in works if work.calls_until_fine)
    every = span(policy.run.every.total_seconds())
    verb = "succeeds" if len(poison) == 1 else "succeed"
    loop = f"{counted(len(poison), 'job')} that never {verb} × {polls} polls (every {every})"
    price = policy.cost.per_attempt_usd
    if price is None:
        return Uncapped(calls, None, None, f"{loop} = {len(poison) * polls} calls, and no price is set")
    others = sum((job.usd for job in jobs if job.key not in poison), Decimal(0))
    usd = len(poison) * polls * price + others
    as_recorded = others + polls * sum(
        (job.usd / len(job.attempts) for job in jobs if job.key in poison and job.attempts), Decimal(0)
    )
    working = (
        f"{loop} × {money(price)} + {money(others)} for the others = {money(usd)}; "
        f"at what those calls did cost here, {money(as_recorded)}"
    )
    return Uncapped(calls, usd, as_recorded, working)


def money(amount: Decimal) -> str:
    """US dollars with the cents; of less than a dollar up to four places."""
    return dollars(amount.quantize(Decimal("0.01" if amount >= 1 else "0.0001")))
