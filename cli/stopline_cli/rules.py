"""The two questions about a job that a rule answers: what set its due time, and what stopped it."""

from collections.abc import Mapping
from typing import Any, assert_never

from stopline.states import DueRule, StopReason
from stopline_cli.words import counted, moment, span, usd

Row = Mapping[str, Any]


def due_rule(job: Row, kind: Row) -> str:
    """A sentence on what set the job's due time."""
    cap = span(kind["retry_cap"])
    rule = DueRule(job["due_rule"])
    match rule:
        case DueRule.ENQUEUE:
            if job["round"] > 1:
                return "A replay opened this round, and set the due time to that moment."
            return "The due time was set when the job was enqueued."
        case DueRule.BACKOFF:
            base = span(kind["retry_base"])
            return (
                f"Backoff set the due time: {base} after the first failure, doubled for each further one, "
                f"at most {cap}, shortened at random by up to half."
            )
        case DueRule.RETRY_AFTER:
            return f"The receiver asked for the due time (Retry-After); at most {cap} are granted."
        case DueRule.BUDGET:
            return "The kind's daily budget set the due time."
        case DueRule.BREAKER:
            return "The kind's circuit breaker set the due time: its jobs were failing together."
        case DueRule.CHECK:
            base = span(kind["retry_base"])
            backoff = f"{base}, doubled, at most {cap}"
            return f"Its effect was found not to exist; from there backoff set the due time ({backoff})."
    assert_never(rule)


def stop_rule(job: Row, kind: Row) -> str:
    """The limit that ended the job, with its figure, as the end of a sentence."""
    reason = StopReason(job["stop_reason"])
    match reason:
        case StopReason.ATTEMPTS_EXHAUSTED:
            return f"its {counted(job['max_attempts'], 'attempt')} are used up (max_attempts)"
        case StopReason.CRASHES_EXHAUSTED:
            ended = f"{counted(job['crashes'], 'attempt')} ended without an answer, by a crash or a timeout"
            return f"{ended}, and the kind allows {kind['max_crashes']} (max_crashes)"
        case StopReason.PERMANENT_FAILURE:
            return "the handler or the receiver said that no further attempt can succeed"
        case StopReason.ELAPSED_LIMIT:
            limit = span(kind["max_elapsed"] or 0)
            return f"the next attempt would start more than {limit} after the first one (max_elapsed)"
        case StopReason.DEADLINE_PASSED:
            return f"it had to be done by {moment(job['deadline_at'])} (deadline)"
        case StopReason.BUDGET_EXHAUSTED:
            spent, limit = usd(job["cost_usd"]), usd(kind["per_job_usd"] or 0)
            return f"{spent} are spent or reserved, and a round may cost {limit} (per_job_usd)"
        case StopReason.STEP_LIMIT:
            return f"it took {counted(job['steps'], 'step')}, and the kind allows {kind['max_steps']} (max_steps)"
        case StopReason.REOPEN_LIMIT:
            often = f"{counted(kind['max_reopens'], 'time')} within {span(kind['reopen_window'])}"
            return f"its source kept returning the key after its jobs had succeeded, {often} (max_reopens)"
        case StopReason.UNREADABLE:
            return "its stored data cannot be read"
        case StopReason.CANCELLED:
            return "it was cancelled"
        case StopReason.COMPLETED:
            return "it was completed"
    assert_never(reason)
