"""One job and its kind as the engine shows them to people, for tests of what is made of them."""

from typing import Any

NOW = "2026-03-01T12:00:00.000000Z"

KIND: dict[str, Any] = {
    "name": "close", "owner": "support", "idempotent": True, "effect": "whole_attempt", "run_every": 60,
    "retry_base": 30, "retry_cap": 900, "max_crashes": 2, "max_elapsed": 86400, "per_job_usd": 1.0, "max_steps": 20,
    "max_checks": 5, "max_reopens": 3, "reopen_window": 86400, "retired_at": None, "paused_at": None,
    "paused_until": None, "paused_by": None, "paused_why": None, "reconciles": False, "breaker_level": 0,
    "probe_job": None, "probe_until": None, "over_budget": False, "full": False, "concurrency": None,
    "daily_budget_usd": None,
}  # fmt: skip

JOB: dict[str, Any] = {
    "id": 7, "kind": "close", "key": "conversation:7", "holds_key": True, "state": "pending", "attempts": 2,
    "max_attempts": 5, "crashes": 1, "round": 1, "fence": 2, "cost_usd": 0.4, "steps": 0,
    "created_at": "2026-03-01T11:00:00.000000Z", "due_at": "2026-03-01T12:12:00Z", "due_rule": "backoff",
    "give_up_at": "2026-03-02T11:00:00Z", "deadline_at": None, "claimed_by": None, "claimed_at": None,
    "lease_until": None, "effect_started_at": None, "cancel_requested_at": None, "effect_key": "3f-7",
    "last_outcome": "transient", "last_error_class": "ThrottlingException", "last_error": "slow down\nframe",
    "stop_reason": None, "finished_at": None, "acknowledged_at": None, "checks": 0, "next_check_at": None,
    "review_by": None, "replay_by": None, "replay_why": None, "late_success": False,
}  # fmt: skip
