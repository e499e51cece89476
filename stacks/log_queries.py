"""Logs Insights queries that are saved with the deployment: what to run first when an alarm is on.

A query reads the logs of one group of functions. The names of its fields are those of the library's log lines, of the
monitor's metric line and of Lambda's own JSON lines; a test holds them to what is really written.
"""

from dataclasses import dataclass
from enum import StrEnum


class Logs(StrEnum):
    """Whose logs a query reads."""

    MONITOR = "monitor"
    SWEEPER = "sweeper"
    POLLERS = "pollers"


@dataclass(frozen=True, slots=True)
class LogQuery:
    """One saved query. `meaning` is what its answer tells."""

    name: str
    logs: Logs
    meaning: str
    text: str


_BROKEN = 'level in ["ERROR", "CRITICAL"] or record.status in ["timeout", "error", "failure"]'

_FAILURES = f"""fields @timestamp, message, error, errorType, errorMessage, record.status, @message
| filter {_BROKEN}
| sort @timestamp desc
| limit 50"""

QUERIES: tuple[LogQuery, ...] = (
    LogQuery(
        name="Kinds now",
        logs=Logs.MONITOR,
        meaning="Each kind's numbers at the newest readings: which kind is late, stuck, over budget or silent.",
        text="""fields @timestamp, jsonParse(@message) as line
| filter ispresent(_aws.Timestamp)
| sort @timestamp desc
| limit 5
| unnest line.kinds into kind
| display @timestamp, kind.kind, kind.owner, kind.due, kind.oldest_due_age, kind.late, kind.claimed, kind.stuck,
    kind.abandoned_open, kind.uncertain, kind.uncertain_overdue, kind.spend_today, kind.worst_case_spend,
    kind.over_budget, kind.paused, kind.poller_silent""",
    ),
    LogQuery(
        name="Monitor failures",
        logs=Logs.MONITOR,
        meaning="Why there was no reading: the database could not be read, or the function failed.",
        text=_FAILURES,
    ),
    LogQuery(
        name="Sweeper failures",
        logs=Logs.SWEEPER,
        meaning="Why there was no sweep.",
        text=_FAILURES,
    ),
    LogQuery(
        name="Poller failures",
        logs=Logs.POLLERS,
        meaning="Pollers that failed, could not reach the database, or lost an answer, by kind.",
        text=f"""fields @timestamp, message, kind, error, errorType, errorMessage, record.status, @log
| filter {_BROKEN} or message in ["kind_unreachable", "claim_unanswered"]
| sort @timestamp desc
| limit 50""",
    ),
    LogQuery(
        name="Failing attempts",
        logs=Logs.POLLERS,
        meaning="How attempts ended that did not succeed, the most frequent first, with a job of each to look at.",
        text="""filter message = "attempt" and outcome != "succeeded"
| stats count(*) as attempts, latest(job) as example_job, latest(@timestamp) as newest
    by kind, outcome, error_class, stop_reason
| sort attempts desc
| limit 50""",
    ),
    LogQuery(
        name="One job",
        logs=Logs.POLLERS,
        meaning="Everything that was logged of one job: put its number in place of 0.",
        text="""fields @timestamp, message, kind, outcome, state, stop_reason, due_at, error_class, text
| filter job = 0
| sort @timestamp asc
| limit 500""",
    ),
)
