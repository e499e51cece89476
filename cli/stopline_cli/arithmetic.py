"""What open jobs may still cost, worked out where everybody can follow. Pure."""

from collections.abc import Mapping
from typing import Any

from stopline_cli.words import counted, usd

Row = Mapping[str, Any]
_GROUPS = 5


def working(kind: Row) -> str:
    """The arithmetic of one kind as `ReadStore.exposure` gives it: rows x attempts left x price, and what caps it."""
    if not kind["open_rows"]:
        return f"{kind['kind']}: no open rows = at most $0.00"
    begun = f"{kind['kind']}: {counted(kind['open_rows'], 'open row')}: {_attempts(kind)}"
    return f"{begun} {_priced(kind)}" if _has_price(kind) else f"{begun} {_calls(kind)}"


def today(kind: Row) -> str:
    """What the kind's day (UTC) has cost, and what its budget leaves."""
    spent = f"{kind['kind']}: {usd(kind['spent_today_usd'])} spent or reserved today"
    if kind["daily_budget_usd"] is None:
        return f"{spent}; no daily budget is set"
    left, most = usd(kind["budget_left_today_usd"]), usd(kind["worst_case_today_usd"])
    return f"{spent} of {usd(kind['daily_budget_usd'])} (daily_budget_usd); {left} left, so at most {most} more today"


def _has_price(kind: Row) -> bool:
    return bool(float(kind["per_attempt_usd"] or 0) or float(kind["per_step_usd"] or 0))


def _attempts(kind: Row) -> str:
    """Rows by the attempts that they have left, and the sum of these."""
    groups = kind["by_attempts_left"]
    terms = [f"{group['rows']:,} x {group['attempts_left']:,}" for group in groups[:_GROUPS]]
    if rest := groups[_GROUPS:]:
        rows = sum(group["rows"] for group in rest)
        left = sum(group["rows"] * group["attempts_left"] for group in rest)
        terms.append(f"{left:,} of {counted(rows, 'row')}")
    return f"{' + '.join(terms)} = {kind['attempts_left']:,} attempts left"


def _priced(kind: Row) -> str:
    price = float(kind["per_attempt_usd"] or 0)
    text = f"x {usd(price)}"
    if float(kind["per_step_usd"] or 0):
        text += f" + {counted(kind['steps_left'], 'step')} left x {usd(kind['per_step_usd'])}"
    if not kind["rows_ended_by_per_job"]:
        return f"{text} = at most {usd(kind['worst_case_usd'])}"
    ended = f"{counted(kind['rows_ended_by_per_job'], 'row')} ended sooner by per_job_usd ({usd(kind['per_job_usd'])})"
    return f"{text} = {usd(kind['uncapped_usd'])}, {ended}: at most {usd(kind['worst_case_usd'])}"


def _calls(kind: Row) -> str:
    text = f"x {counted(kind['calls_per_attempt'], 'call')}"
    if kind["steps_left"]:
        text += f" + {counted(kind['steps_left'], 'step')} left"
    return f"{text} = at most {counted(kind['calls_left'], 'call')}; no price is set (per_attempt_usd in [cost])"
