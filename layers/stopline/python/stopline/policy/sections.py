"""The sections of `policy.toml`: every key below the top, declared once."""

# ruff: noqa: RUF009 - `key` declares a dataclass field, as `dataclasses.field` does

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal

from stopline.limits import LAMBDA_TIMEOUT_SECONDS, MAX_ATTEMPTS
from stopline.policy.keys import key
from stopline.policy.lists import Names, Variables
from stopline.policy.values import (
    Choice,
    Duration,
    Flag,
    Money,
    Pattern,
    Share,
    Whole,
)

_MS = timedelta(milliseconds=1)
_SECOND = timedelta(seconds=1)
_MINUTE = timedelta(minutes=1)
_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_YEAR = 365 * _DAY
_LAMBDA = timedelta(seconds=LAMBDA_TIMEOUT_SECONDS)

NAME_PATTERN = r"[a-z][a-z0-9_]{0,47}"
NAME_FORM = "a small letter followed by up to 47 small letters, digits and underscores"
OWN_POLLER = "own"

_RATE = r"rate\((?:1 (?:minute|hour|day)|(?!0|1 )\d{1,5} (?:minutes|hours|days))\)"
_CRON = r"cron\((?:[^\s()]+ ){5}[^\s()]+\)"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """When to stop."""

    max_attempts: int = key(Whole(1, MAX_ATTEMPTS), "Attempts a round; the last failure abandons the job.", default=5)
    max_crashes: int = key(
        Whole(1, MAX_ATTEMPTS), "Attempts a round that may end without an answer: crashes and timeouts.", default=2
    )
    max_releases: int = key(
        Whole(0, 1000), "Times a round that a claim which never started gives its attempt back.", default=20
    )
    max_elapsed: timedelta | None = key(
        Duration(_SECOND, _YEAR), "Time from a round's first claim after which no attempt starts.", default=None
    )
    deadline: timedelta | None = key(
        Duration(_SECOND, _YEAR), "Time from a job's due time after which it is of no use.", default=None
    )


@dataclass(frozen=True, kw_only=True)
class Retry:
    """How long to wait between attempts."""

    base: timedelta = key(
        Duration(100 * _MS, _DAY),
        "The pause after the first failure; it doubles with each one.",
        default=timedelta(seconds=30),
        column="retry_base",
    )
    cap: timedelta = key(
        Duration(100 * _MS, 7 * _DAY), "The longest pause.", default=timedelta(minutes=15), column="retry_cap"
    )


@dataclass(frozen=True, kw_only=True)
class Run:
    """How attempts run."""

    every: timedelta = key(
        Duration(_MINUTE, _DAY, step=_MINUTE), "How often the poller starts.", default=_MINUTE, column="run_every"
    )
    timeout: timedelta = key(Duration(100 * _MS, _LAMBDA), "The longest that one attempt may take.")
    margin: timedelta = key(
        Duration(100 * _MS, 5 * _MINUTE),
        "Added to the timeout for the lease: time to stop an attempt and record it.",
        default=timedelta(seconds=15),
    )
    poller_timeout: timedelta = key(
        Duration(_SECOND, _LAMBDA),
        "The Lambda timeout of the poller.",
        default_text="timeout + margin + 10s for the tick, at least 1m and at most 15m",
    )
    concurrency: int | None = key(
        Whole(1, 10_000), "Running jobs of the kind, over all pollers; none is no limit.", default=None
    )
    children: int = key(Whole(1, 64), "Attempts that one poller runs at once.", default=1)
    batch: int = key(Whole(1, 1000), "Jobs that one claim takes; above 1 with inline isolation only.", default=1)
    memory_mb: int = key(Whole(128, 10_240), "Memory of the poller's Lambda, in MB.", default=1024)
    isolation: str = key(
        Choice(("process", "inline")),
        "A child process for each attempt, or all in the poller itself.",
        default="process",
    )
    poller: str = key(
        Pattern(pattern=NAME_PATTERN, form=NAME_FORM),
        "The poller's name; kinds that name the same one share it.",
        default=OWN_POLLER,
    )


@dataclass(frozen=True, kw_only=True)
class Access:
    """What a handler may reach."""

    egress: str = key(
        Choice(("none", "bedrock", "internet")), "Where the handler may connect to.", default="none", column=""
    )
    bedrock_models: tuple[str, ...] = key(
        Names(Pattern(pattern=r"[A-Za-z0-9][A-Za-z0-9.:/_-]{1,255}", form="a model id, inference profile id or ARN")),
        "Bedrock models that the handler may call.",
        default=(),
        column="",
    )
    secrets: tuple[str, ...] = key(
        Names(
            Pattern(
                pattern=r"[A-Za-z0-9/_+=.@:-]{1,512}", form="the name or ARN of a Secrets Manager secret", longest=512
            )
        ),
        "Secrets that the handler may read.",
        default=(),
        column="",
    )
    environment: Mapping[str, str] = key(
        Variables(), "Environment variables that the handler gets.", default={}, column=""
    )
    database_role: str | None = key(
        Pattern(
            pattern=r"(?!pg_|stopline_)[a-z_][a-z0-9_]{0,62}",
            form="a PostgreSQL role of the application, in small letters, not starting with pg_ or stopline_",
        ),
        "The role that `job.connect()` connects as.",
        default=None,
        column="",
    )


@dataclass(frozen=True, kw_only=True)
class Cost:
    """What attempts cost, and when money ends them."""

    per_attempt_usd: Decimal | None = key(
        Money(), "The most that one attempt costs, all its calls together; reserved by each claim.", default=None
    )
    calls_per_attempt: int = key(Whole(0, 10_000), "Paid calls in one attempt.", default=1)
    per_job_usd: Decimal | None = key(Money(), "The most that one round of a job may cost.", default=None)
    daily_budget_usd: Decimal | None = key(
        Money(), "The most that the kind may cost in a UTC day; claims wait for the next.", default=None
    )


@dataclass(frozen=True, kw_only=True)
class Agent:
    """Bounds of work that goes in steps, such as an agent's model calls."""

    max_steps: int | None = key(Whole(1, 100_000), "Steps a round, over all attempts; none is no limit.", default=None)
    per_step_usd: Decimal | None = key(Money(), "The most that one step costs; reserved by each step.", default=None)


@dataclass(frozen=True, kw_only=True)
class Reconcile:
    """How an unknown outcome is cleared up."""

    settle: timedelta = key(
        Duration(timedelta(), _DAY), "Wait after an attempt before the receiver is asked.", default=2 * _MINUTE
    )
    max_checks: int = key(Whole(1, 100), "Questions to the receiver before a person is asked.", default=5)
    review_within: timedelta = key(
        Duration(_MINUTE, 90 * _DAY), "Time that a person has before it counts as overdue.", default=_DAY
    )


@dataclass(frozen=True, kw_only=True)
class Source:
    """How `source.sql` feeds the kind."""

    rows_per_tick: int = key(Whole(1, 10_000), "Rows taken from the source in one tick.", default=100)
    max_reopens: int = key(
        Whole(0, 1000), "New jobs in the window for a key that the source goes on returning.", default=3
    )
    reopen_window: timedelta = key(Duration(_MINUTE, 90 * _DAY), "The window of max_reopens.", default=_DAY)


@dataclass(frozen=True, kw_only=True)
class Enqueue:
    """A kind that enqueues itself on a schedule."""

    schedule: str | None = key(
        Pattern(
            pattern=_RATE + "|" + _CRON,
            form='an EventBridge schedule: "rate(5 minutes)", "rate(1 hour)" or "cron(0 6 * * ? *)" with six fields',
        ),
        "When a job is enqueued, keyed by the scheduled time.",
        default=None,
    )
    timezone: str = key(
        Pattern(pattern=r"[A-Za-z][A-Za-z0-9_+/-]{1,63}", form='a time zone such as "UTC" or "Europe/Berlin"'),
        "The time zone of a cron schedule.",
        default="UTC",
    )


@dataclass(frozen=True, kw_only=True)
class Breaker:
    """When a kind whose jobs nearly all fail is paused."""

    window: timedelta = key(
        Duration(_MINUTE, _DAY), "How far back attempts count.", default=10 * _MINUTE, column="breaker_window"
    )
    jobs: int = key(Whole(1, 10_000), "Different jobs that must have failed in it.", default=5, column="breaker_jobs")
    share: float = key(Share(), "Part of the attempts that must have failed.", default=0.9, column="breaker_share")
    cooldown: timedelta = key(
        Duration(_SECOND, _DAY),
        "The first pause; it doubles while probes fail.",
        default=_MINUTE,
        column="breaker_cooldown",
    )
    max_cooldown: timedelta = key(
        Duration(_SECOND, _DAY), "The longest pause.", default=30 * _MINUTE, column="breaker_max_cooldown"
    )


@dataclass(frozen=True, kw_only=True)
class Alarms:
    """When the kind counts as late or stuck."""

    due_age: timedelta = key(
        Duration(_MINUTE, 90 * _DAY), "Age of the oldest due job above which the kind is late.", default=15 * _MINUTE
    )
    stuck_grace: timedelta = key(
        Duration(_SECOND, _DAY), "Time after a lease's end at which a claimed job is stuck.", default=5 * _MINUTE
    )
    own_metrics: bool = key(Flag(), "Metrics and alarms of the kind's own, at a price.", default=False)


@dataclass(frozen=True, kw_only=True)
class Retention:
    """How long finished jobs are kept."""

    succeeded: timedelta = key(
        Duration(_HOUR, 10 * _YEAR), "Keep succeeded jobs this long.", default=30 * _DAY, column="retain_succeeded"
    )
    stopped: timedelta = key(
        Duration(_HOUR, 10 * _YEAR),
        "Keep cancelled jobs this long; abandoned ones stay.",
        default=180 * _DAY,
        column="retain_stopped",
    )
