"""The pollers of a deployment: which kinds each one runs, and how much of it there can be at once."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from stopline.policy import Policy

_MINUTE = timedelta(minutes=1)
_UNITS = {"minute": _MINUTE, "hour": timedelta(hours=1), "day": timedelta(days=1)}
_RATE = re.compile(r"rate\((\d+) (minute|hour|day)s?\)")


@dataclass(frozen=True, slots=True)
class PollerPlan:
    """One poller. Kinds that share it agree on everything that is the function's (the policy's rules see to that)."""

    name: str
    kinds: tuple[Policy, ...]

    @property
    def every(self) -> timedelta:
        return self.kinds[0].run.every

    @property
    def timeout(self) -> timedelta:
        return self.kinds[0].run.poller_timeout

    @property
    def memory_mb(self) -> int:
        return self.kinds[0].run.memory_mb

    @property
    def egress(self) -> str:
        return self.kinds[0].access.egress

    @property
    def periodic(self) -> tuple[Policy, ...]:
        """The kinds with a schedule of their own."""
        return tuple(policy for policy in self.kinds if policy.enqueue.schedule is not None)

    @property
    def invocations(self) -> int:
        """How many of its invocations can run at once, each as long as it may."""
        own = math.ceil(self.timeout / self.every)
        return own + sum(
            math.ceil(self.timeout / _shortest_interval(str(kind.enqueue.schedule))) for kind in self.periodic
        )

    @property
    def job_connections(self) -> int:
        """Connections of `job.connect()` at once, one for each running job of a kind that has a database role."""
        users = [policy for policy in self.kinds if policy.access.database_role is not None]
        if not users:
            return 0
        bound = self.invocations * max(policy.run.children for policy in users)
        limits = [policy.run.concurrency for policy in users]
        return min(bound, sum(limit for limit in limits if limit is not None)) if None not in limits else bound

    @property
    def connections(self) -> int:
        """Database connections at once: the supervisor's of each invocation, and the jobs'."""
        return self.invocations + self.job_connections

    @property
    def working(self) -> str:
        """How `connections` was worked out."""
        text = f"{self.name}: {self.invocations} at once"
        return (
            text
            if not self.job_connections
            else f"{text} + {self.job_connections} of job.connect() = {self.connections}"
        )


def plan_pollers(policies: Mapping[str, Policy]) -> list[PollerPlan]:
    """The pollers that these kinds need, by name."""
    kinds: dict[str, list[Policy]] = {}
    for policy in policies.values():
        kinds.setdefault(policy.poller_name, []).append(policy)
    return [
        PollerPlan(name, tuple(sorted(members, key=lambda policy: policy.name)))
        for name, members in sorted(kinds.items())
    ]


def _shortest_interval(expression: str) -> timedelta:
    """The shortest time between two occurrences. A cron expression with one fixed minute comes once an hour at most."""
    match = _RATE.fullmatch(expression)
    if match is not None:
        return int(match.group(1)) * _UNITS[match.group(2)]
    minutes = expression.removeprefix("cron(").split()[0]
    return timedelta(hours=1) if minutes.isdigit() else _MINUTE
