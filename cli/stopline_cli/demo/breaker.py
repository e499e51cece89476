"""When a breaker must let calls through in an outage, worked out from the policy alone.

The poller looks at whole multiples of its interval, and the sweep decides a moment after each look. So a pause that
would end just when the poller looks ends a moment later, and its probe waits for the next look.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from stopline.policy import Policy
from stopline_cli.demo.clock import MINUTE
from stopline_cli.errors import CommandError

OPENED, EXTENDED, CLOSED = "breaker_opened", "breaker_extended", "breaker_closed"


@dataclass(frozen=True, slots=True)
class Plan:
    """What must come of an outage. `calls` are by the minute of the poll that makes them, from the outage's start;
    `pauses` are the cool-downs in their order; `down` is how long nothing works."""

    down: timedelta
    jobs: int
    calls: Mapping[int, int]
    pauses: tuple[timedelta, ...]
    uncapped: int
    """Calls of a loop that tries every job at every poll while nothing works."""
    paused: int
    """Polls that find the kind paused and call nobody."""

    @property
    def events(self) -> tuple[str, ...]:
        """What the sweep says, in its order."""
        return (OPENED, *[EXTENDED] * (len(self.pauses) - 1), CLOSED)

    @property
    def wasted(self) -> int:
        """Calls while nothing works."""
        return sum(count for minute, count in self.calls.items() if minute * MINUTE < self.down)

    @property
    def total(self) -> int:
        """All calls: of every job at least the one that goes well."""
        return sum(self.calls.values())


def plan(policy: Policy, jobs: int, down: timedelta) -> Plan:
    """For so many jobs, all due when the outage begins. CommandError where the jobs are too few to open the breaker, or
    to probe until the outage ends: a probe is never a job's last attempt."""
    every = policy.run.every // MINUTE
    probes_left = jobs * (policy.limits.max_attempts - 2)
    if jobs < policy.breaker.jobs:
        raise _too_few(policy, jobs, "open the breaker")
    calls = {0: jobs}
    pauses = [cooldown(policy, 0)]
    until = pauses[0]
    minute = 0
    while True:
        minute += every
        if minute * MINUTE <= until:
            continue
        if probes_left < 1:
            raise _too_few(policy, jobs, "probe until the outage ends")
        calls[minute] = 1
        probes_left -= 1
        if minute * MINUTE >= down:
            break
        pauses.append(cooldown(policy, len(pauses)))
        until = minute * MINUTE + pauses[-1]
    calls[minute + every] = jobs - 1
    looks = -(-down // policy.run.every)
    paused = minute // every + 2 - len(calls)
    return Plan(down, jobs, calls, tuple(pauses), jobs * looks, paused)


def cooldown(policy: Policy, failed_probes: int) -> timedelta:
    """The pause after so many probes have failed: it doubles up to its cap."""
    return min(policy.breaker.max_cooldown, policy.breaker.cooldown * (1 << min(failed_probes, 40)))


def _too_few(policy: Policy, jobs: int, what: str) -> CommandError:
    fix = "use the shipped policy, or raise its max_attempts"
    return CommandError("the outage", f"has {jobs} jobs of {policy.name}, too few to {what}", fix)
