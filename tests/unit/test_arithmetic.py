"""The worst case of open jobs, with its working written out."""

from typing import Any

import pytest

from stopline_cli.arithmetic import today, working

KIND: dict[str, Any] = {
    "kind": "close", "open_rows": 4,
    "by_attempts_left": [{"attempts_left": 5, "rows": 3}, {"attempts_left": 2, "rows": 1}], "attempts_left": 17,
    "steps_left": 0, "calls_left": 17, "calls_per_attempt": 1, "per_attempt_usd": 0.2,
    "per_step_usd": None, "per_job_usd": None, "uncapped_usd": 3.4, "rows_ended_by_per_job": 0, "worst_case_usd": 3.4,
    "spent_today_usd": 4.2, "daily_budget_usd": None, "budget_left_today_usd": None, "worst_case_today_usd": 3.4,
}  # fmt: skip
NO_PRICE = {"per_attempt_usd": None, "worst_case_usd": 0, "calls_per_attempt": 2, "calls_left": 34}


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "close: 4 open rows: 3 x 5 + 1 x 2 = 17 attempts left x $0.20 = at most $3.40"),
        (
            {"per_job_usd": 0.8, "rows_ended_by_per_job": 3, "worst_case_usd": 2.8},
            "close: 4 open rows: 3 x 5 + 1 x 2 = 17 attempts left x $0.20 = $3.40, "
            "3 rows ended sooner by per_job_usd ($0.80): at most $2.80",
        ),
        (
            {"per_step_usd": 0.01, "steps_left": 60, "worst_case_usd": 4.0},
            "close: 4 open rows: 3 x 5 + 1 x 2 = 17 attempts left x $0.20 + 60 steps left x $0.01 = at most $4.00",
        ),
        (
            NO_PRICE,
            "close: 4 open rows: 3 x 5 + 1 x 2 = 17 attempts left x 2 calls = at most 34 calls; "
            "no price is set (per_attempt_usd in [cost])",
        ),
        ({"open_rows": 0}, "close: no open rows = at most $0.00"),
        (
            {"by_attempts_left": [{"attempts_left": left, "rows": 1} for left in range(7, 0, -1)], "open_rows": 7,
             "attempts_left": 28, "worst_case_usd": 5.6},
            "close: 7 open rows: 1 x 7 + 1 x 6 + 1 x 5 + 1 x 4 + 1 x 3 + 3 of 2 rows = 28 attempts left "
            "x $0.20 = at most $5.60",
        ),
    ],
)  # fmt: skip
def test_the_working_can_be_followed_term_by_term(changes: dict[str, Any], text: str) -> None:
    assert working(KIND | changes) == text


def test_today_says_what_is_spent_and_what_the_budget_leaves() -> None:
    assert today(KIND) == "close: $4.20 spent or reserved today; no daily budget is set"
    budget = {"daily_budget_usd": 5.0, "budget_left_today_usd": 0.8, "worst_case_today_usd": 0.8}
    assert today(KIND | budget) == (
        "close: $4.20 spent or reserved today of $5.00 (daily_budget_usd); $0.80 left, so at most $0.80 more today"
    )
