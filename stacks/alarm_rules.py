"""Every alarm, declared once: the stack builds what stands here, and docs/operate.md explains it.

Gauges of the queue are read by one monitor. When it is silent they are missing all at once, and one alarm says so:
`monitor_silent`, the only one for which missing data breaches. The others keep the state that they had: an alarm that
turned green because nobody looked would be a lie, and one that turned red would hide which incident it was.
"""

from dataclasses import dataclass
from enum import StrEnum

from stopline.policy import Policy

METRICS = "Stopline"
"""The namespace of what the monitor writes."""

DATABASE_CONNECTIONS_SHARE = 0.8
"""The part of max_connections at which `database_connections` breaches."""


class Missing(StrEnum):
    """What a period without data counts as (CloudWatch's TreatMissingData)."""

    BREACHING = "breaching"
    NOT_BREACHING = "notBreaching"
    IGNORE = "ignore"


class Source(StrEnum):
    """Where an alarm's metric comes from, which decides its dimensions."""

    TOTALS = "the monitor's totals"
    KIND = "a kind's own metrics"
    DEAD_LETTERS = "a schedule's dead-letter queue"
    WRITER = "the database's writer"


class Comparison(StrEnum):
    """The side of the threshold that breaches."""

    AT_LEAST = "GreaterThanOrEqualToThreshold"
    ABOVE = "GreaterThanThreshold"
    BELOW = "LessThanThreshold"


@dataclass(frozen=True, slots=True)
class AlarmRule:
    """One alarm: it is on while `datapoints` of the last `periods` readings of `period_s` seconds breach.

    `threshold` None is worked out by the stack. `first_query` is the first thing to run: a `stopline` command or the
    name of a saved query. `section` is the heading in docs/operate.md. Only `pages` wakes somebody.
    """

    name: str
    section: str
    source: Source
    metric: str
    statistic: str
    comparison: Comparison
    threshold: float | None
    datapoints: int
    periods: int
    period_s: int
    missing: Missing
    missing_why: str
    meaning: str
    first_query: str
    pages: bool

    @property
    def anchor(self) -> str:
        """Where its section starts, as GitHub and most renderers name it."""
        return self.section.lower().replace(" ", "-")

    @property
    def setting(self) -> str:
        """When it is on, in words: "KindsStuck >= 1 in 2 of 3 minutes"."""
        sign = {Comparison.AT_LEAST: ">=", Comparison.ABOVE: ">", Comparison.BELOW: "<"}[self.comparison]
        limit = "a share of max_connections" if self.threshold is None else f"{self.threshold:g}"
        span = "minutes" if self.period_s == 60 else f"readings of {self.period_s // 60} minutes"
        return f"{self.metric} {sign} {limit} in {self.datapoints} of {self.periods} {span}"

    @property
    def runbook(self) -> str:
        """The section's place in the repository."""
        return f"docs/operate.md#{self.anchor}"


_SILENT_ELSEWHERE = "without the monitor nothing is known, which monitor_silent says; the last known state stands"
_LEVEL_ELSEWHERE = "an instance that reports nothing is no proof of health or load; monitor_silent sees an outage"


def _gauge(
    name: str,
    section: str,
    metric: str,
    meaning: str,
    first_query: str,
    *,
    of: tuple[int, int] = (1, 1),
    pages: bool = True,
    source: Source = Source.TOTALS,
    comparison: Comparison = Comparison.AT_LEAST,
    threshold: float = 1,
) -> AlarmRule:
    """A number that the monitor writes each minute. `of` is M out of N."""
    return AlarmRule(
        name=name,
        section=section,
        source=source,
        metric=metric,
        statistic="Maximum",
        comparison=comparison,
        threshold=threshold,
        datapoints=of[0],
        periods=of[1],
        period_s=60,
        missing=Missing.IGNORE,
        missing_why=_SILENT_ELSEWHERE,
        meaning=meaning,
        first_query=first_query,
        pages=pages,
    )


RULES: tuple[AlarmRule, ...] = (
    AlarmRule(
        name="monitor_silent",
        section="Monitor silent",
        source=Source.TOTALS,
        metric="Heartbeat",
        statistic="Sum",
        comparison=Comparison.BELOW,
        threshold=1,
        datapoints=1,
        periods=3,
        period_s=60,
        missing=Missing.BREACHING,
        missing_why="the heartbeat is written only after a full reading, so its absence is the incident",
        meaning="No full reading for minutes: nothing else on this page can be trusted.",
        first_query="Monitor failures",
        pages=True,
    ),
    _gauge(
        "stuck",
        "Stuck",
        "KindsStuck",
        "Attempts whose lease ended longer than stuck_grace ago are still claimed: the sweeper does not end them.",
        "stopline jobs --state claimed",
        of=(2, 3),
    ),
    _gauge(
        "abandoned",
        "Abandoned",
        "KindsAbandoned",
        "Jobs reached a stop line and nobody has acknowledged them.",
        "stopline jobs --state abandoned",
    ),
    _gauge(
        "uncertain_overdue",
        "Uncertain overdue",
        "KindsUncertainOverdue",
        "Nobody knows whether an effect happened, and the time to find out has passed.",
        "stopline jobs --state uncertain",
    ),
    _gauge(
        "late",
        "Late",
        "KindsLate",
        "A kind's oldest due job waits longer than its due_age: work arrives faster than it ends, or does not start.",
        "Kinds now",
        of=(3, 5),
    ),
    _gauge(
        "pollers_silent",
        "Pollers silent",
        "PollersSilent",
        "A kind's poller has not asked for work for three of its intervals.",
        "Poller failures",
        of=(2, 3),
    ),
    _gauge(
        "sweeper_silent",
        "Sweeper silent",
        "SweeperSilent",
        "No sweep for five minutes: dead attempts and passed deadlines are not ended.",
        "Sweeper failures",
        of=(2, 3),
    ),
    _gauge(
        "over_budget",
        "Over budget",
        "KindsOverBudget",
        "A kind has no money left for another attempt today: it starts nothing until midnight UTC.",
        "Kinds now",
        pages=False,
    ),
    AlarmRule(
        name="schedule_dead_letters",
        section="Schedule dead letters",
        source=Source.DEAD_LETTERS,
        metric="ApproximateNumberOfMessagesVisible",
        statistic="Maximum",
        comparison=Comparison.AT_LEAST,
        threshold=1,
        datapoints=1,
        periods=1,
        period_s=300,
        missing=Missing.NOT_BREACHING,
        missing_why="SQS reports nothing for a queue that was long empty and unused, which is its usual state",
        meaning="A schedule could not start its function; the refused invocation lies in the queue.",
        first_query="Poller failures",
        pages=False,
    ),
    AlarmRule(
        name="database_cpu",
        section="Database CPU",
        source=Source.WRITER,
        metric="CPUUtilization",
        statistic="Average",
        comparison=Comparison.AT_LEAST,
        threshold=90,
        datapoints=10,
        periods=15,
        period_s=60,
        missing=Missing.IGNORE,
        missing_why=_LEVEL_ELSEWHERE,
        meaning="The writer has used nine tenths of its largest capacity for ten minutes: work is about to be late.",
        first_query="Kinds now",
        pages=False,
    ),
    AlarmRule(
        name="database_connections",
        section="Database connections",
        source=Source.WRITER,
        metric="DatabaseConnections",
        statistic="Maximum",
        comparison=Comparison.AT_LEAST,
        threshold=None,
        datapoints=3,
        periods=5,
        period_s=60,
        missing=Missing.IGNORE,
        missing_why=_LEVEL_ELSEWHERE,
        meaning="The writer has four fifths of the connections that it takes; then pollers are refused.",
        first_query="Poller failures",
        pages=False,
    ),
)


def kind_rules(policy: Policy) -> tuple[AlarmRule, ...]:
    """The alarms of a kind that asked for its own. They tell its owner; the totals above do the paging."""
    due_age = policy.alarms.due_age.total_seconds()
    return (
        _of_kind("stuck", "Stuck", "Stuck", "stopline jobs --state claimed", of=(2, 3)),
        _of_kind("abandoned", "Abandoned", "AbandonedOpen", "stopline jobs --state abandoned"),
        _of_kind("uncertain_overdue", "Uncertain overdue", "UncertainOverdue", "stopline jobs --state uncertain"),
        _of_kind(
            "late", "Late", "OldestDueAge", "Kinds now", of=(3, 5), comparison=Comparison.ABOVE, threshold=due_age
        ),
    )


def _of_kind(
    name: str,
    section: str,
    metric: str,
    first_query: str,
    *,
    of: tuple[int, int] = (1, 1),
    comparison: Comparison = Comparison.AT_LEAST,
    threshold: float = 1,
) -> AlarmRule:
    """The rule of the same name, for one kind's own metric."""
    (total,) = (rule for rule in RULES if rule.name == name)
    return _gauge(
        name,
        section,
        metric,
        total.meaning,
        first_query,
        of=of,
        pages=False,
        source=Source.KIND,
        comparison=comparison,
        threshold=threshold,
    )
