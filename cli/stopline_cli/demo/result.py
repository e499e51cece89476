"""What came of the demo as one JSON object."""

from collections import Counter
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from stopline.policy import Policy
from stopline_cli.demo.compare import Difference
from stopline_cli.demo.expect import Ending
from stopline_cli.demo.figures import Figures
from stopline_cli.demo.outage import Outage
from stopline_cli.demo.work import Work
from stopline_cli.demo.year import Year


def result_as_json(
    kinds: Sequence[Figures],
    expected: Mapping[Work, tuple[Ending, ...]],
    differing: Sequence[Difference],
    *,
    outage: Outage,
    year: Year,
    simulated_hours: float,
    seconds: float,
) -> dict[str, Any]:
    """Figures by kind beside what was expected, and whether it was met. Money as text, in US dollars."""
    return {
        "met": not differing,
        "differences": [difference.as_json() for difference in differing],
        "kinds": {kind.policy.name: _kind(kind) for kind in kinds},
        "expected": {kind.policy.name: _expected(kind.policy, expected) for kind in kinds},
        "outage": _outage(outage),
        "year": _year(year),
        "simulated_hours": round(simulated_hours, 2),
        "seconds": round(seconds, 1),
    }


def _kind(kind: Figures) -> dict[str, Any]:
    return {
        "max_attempts": kind.policy.limits.max_attempts,
        "jobs": len(kind.jobs),
        "states": kind.states,
        "stop_reasons": kind.stop_reasons,
        "attempts": kind.attempts,
        "attempts_without_a_call": kind.without_call,
        "calls": kind.calls,
        "checks": kind.checks,
        "spend_usd": _usd(kind.spent),
        "worst_case_usd": _usd(kind.worst_case),
        "uncapped_spend_usd": _usd(kind.uncapped.usd),
        "uncapped_spend_usd_as_recorded": _usd(kind.uncapped.as_recorded),
        "uncapped_calls": kind.uncapped.calls,
    }


def _expected(policy: Policy, expected: Mapping[Work, tuple[Ending, ...]]) -> dict[str, Any]:
    """The first right ending of each work. `exact` is false where a limit lies within what jitter may do."""
    endings = [endings for work, endings in expected.items() if work.kind == policy.name]
    first = [ending for ending, *_ in endings]
    return {
        "exact": all(len(right) == 1 for right in endings),
        "states": _counted(ending.state for ending in first),
        "stop_reasons": _counted(ending.stop_reason for ending in first if ending.stop_reason is not None),
        "attempts": sum(len(ending.attempts) for ending in first),
        "calls": sum(ending.calls for ending in first),
        "checks": sum(len(ending.checks) for ending in first),
    }


def _outage(outage: Outage) -> dict[str, Any]:
    must = outage.expected
    return {
        "kind": outage.policy.name,
        "jobs": must.jobs,
        "states": dict(outage.states),
        "minutes": must.down.total_seconds() / 60,
        "pauses_minutes": [pause.total_seconds() / 60 for pause in must.pauses],
        "calls_while_down": outage.wasted,
        "calls": sum(outage.calls.values()),
        "calls_by_minute": {str(minute): count for minute, count in sorted(outage.calls.items())},
        "attempts": outage.attempts,
        "paused_polls": outage.paused,
        "events": list(outage.events),
        "expected": {
            "calls_while_down": must.wasted,
            "calls": must.total,
            "calls_by_minute": {str(minute): count for minute, count in sorted(must.calls.items())},
            "events": list(must.events),
        },
        "uncapped_calls_while_down": must.uncapped,
    }


def _year(year: Year) -> dict[str, Any]:
    return {
        "key": year.key,
        "polls": year.polls,
        "polls_run": len(year.ticks),
        "polls_that_changed_something": sum(tick.changed for tick in year.ticks),
        "returned_and_held": year.held,
        "state": year.state,
        "stop_reason": year.stop_reason,
        "acknowledged": year.acknowledged,
        "acknowledged_again": year.said_again,
        "calls": year.calls,
        "calls_at_most": year.bound.calls,
        "calls_after_the_stop": year.calls_since,
        "spend_usd": _usd(year.spent),
        "worst_case_usd": _usd(year.bound.usd),
        "uncapped_calls": year.polls,
        "uncapped_spend_usd": _usd(year.uncapped),
        "uncapped_spend_usd_as_recorded": _usd(year.uncapped_as_recorded),
    }


def _counted(words: Any) -> dict[str, int]:
    return dict(sorted(Counter(str(word) for word in words).items()))


def _usd(amount: Decimal | None) -> str | None:
    return None if amount is None else f"{amount:.6f}"
