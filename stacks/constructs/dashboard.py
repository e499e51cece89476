"""The dashboard: alarms, money at risk, flow, ages, and the parts underneath. Totals only: kinds stand in the logs."""

from collections.abc import Iterable, Mapping, Sequence

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from stacks.alarm_rules import METRICS
from stacks.constructs.metrics import metric, service, writer
from stopline.policy import Policy, worst_case

_WIDTH = 24
_HEIGHT = 6
_AS_DECLARED = cloudwatch.PeriodOverride.INHERIT

_Graph = tuple[str, str, Mapping[str, str]]
"""Title, unit of the axis, and the label of each of the monitor's totals."""

_MONEY: tuple[_Graph, _Graph] = (
    ("Money at risk", "USD", {"SpendToday": "spent today (UTC)", "WorstCaseSpend": "open jobs may still cost"}),
    (
        "Kinds that do not work as they should",
        "kinds",
        {
            "KindsOverBudget": "over budget",
            "KindsPaused": "paused",
            "Breakers": "stopped by the breaker",
            "KindsLate": "late",
            "KindsStuck": "with stuck jobs",
            "KindsAbandoned": "with abandoned jobs",
            "KindsUncertainOverdue": "with overdue uncertain jobs",
            "PollersSilent": "without a poller",
            "SweeperSilent": "the sweeper is silent",
        },
    ),
)
_FLOW: tuple[_Graph, _Graph] = (
    ("Flow", "jobs", {"Due": "due", "Claimed": "running", "LastAttempt": "on their last attempt"}),
    (
        "Stopped, and waiting for a person",
        "jobs",
        {
            "AbandonedOpen": "abandoned, not acknowledged",
            "Abandoned": "abandoned in the last five minutes",
            "Uncertain": "uncertain",
            "Stuck": "stuck",
        },
    ),
)
_AGES: _Graph = ("Ages", "seconds", {"OldestDueAge": "oldest due", "OldestUnfinishedAge": "oldest unfinished"})


class Dashboard(Construct):
    """`functions` maps a word for each function to its name; `dead_letter_queues` are names."""

    def __init__(
        self,
        scope: Construct,
        id: str,
        *,
        prefix: str,
        policies: Sequence[Policy],
        alarms: Sequence[cloudwatch.IAlarm],
        functions: Mapping[str, str],
        dead_letter_queues: Sequence[str],
        cluster_identifier: str | None,
    ) -> None:
        super().__init__(scope, id)
        self.dashboard = cloudwatch.Dashboard(
            self, "Resource", dashboard_name=prefix, default_interval=Duration.hours(6), period_override=_AS_DECLARED
        )
        rows: list[list[cloudwatch.IWidget]] = [
            [
                cloudwatch.AlarmStatusWidget(title="Alarms", alarms=list(alarms), width=_WIDTH // 2, height=_HEIGHT),
                cloudwatch.TextWidget(markdown=worst_cases(policies), width=_WIDTH // 2, height=_HEIGHT),
            ],
            *[[_totals(prefix, *graph) for graph in pair] for pair in (_MONEY, _FLOW)],
            [_totals(prefix, *_AGES), _readings(prefix)],
            _functions(functions),
            [_dead_letters(dead_letter_queues), *_database(cluster_identifier)],
        ]
        for row in rows:
            self.dashboard.add_widgets(*row)


def worst_cases(policies: Iterable[Policy]) -> str:
    """A table in Markdown: the most that one round of one job of each kind can cost."""
    lines = ["**The most that one job can cost**", "", "| kind | owner | a round |", "|---|---|---|"]
    lines += [f"| {policy.name} | {_cell(policy.owner)} | {_cell(worst_case(policy).working)} |" for policy in policies]
    return "\n".join(lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _graph(
    title: str,
    left: Iterable[cloudwatch.IMetric],
    *,
    unit: str,
    right: Iterable[cloudwatch.IMetric] = (),
    right_unit: str | None = None,
    width: int = _WIDTH // 2,
) -> cloudwatch.GraphWidget:
    """A graph from zero. `unit` labels the left axis."""
    right = list(right)
    return cloudwatch.GraphWidget(
        title=title,
        left=list(left),
        right=right,
        left_y_axis=cloudwatch.YAxisProps(min=0, label=unit, show_units=False),
        right_y_axis=cloudwatch.YAxisProps(min=0, label=right_unit, show_units=False) if right else None,
        width=width,
        height=_HEIGHT,
    )


def _totals(prefix: str, title: str, unit: str, figures: Mapping[str, str]) -> cloudwatch.IWidget:
    """A graph of the monitor's totals."""
    shown = [metric(METRICS, name, service(prefix), "Maximum", label=label) for name, label in figures.items()]
    return _graph(title, shown, unit=unit)


def _readings(prefix: str) -> cloudwatch.IWidget:
    """How the functions see the database: beats that fail to come, connections that broke, a transaction left open."""
    age = metric(METRICS, "OldestTransactionAge", service(prefix), "Maximum", label="oldest open transaction")
    beats = [
        metric(METRICS, name, service(prefix), "Sum", label=label)
        for name, label in (("Heartbeat", "readings"), ("Reconnects", "reconnects of the pollers"))
    ]
    return _graph("The database as the functions see it", [age], unit="seconds", right=beats, right_unit="a minute")


def _functions(functions: Mapping[str, str]) -> list[cloudwatch.IWidget]:
    def of_each(name: str, statistic: str) -> list[cloudwatch.IMetric]:
        return [
            metric("AWS/Lambda", name, {"FunctionName": function}, statistic, label=word)
            for word, function in functions.items()
        ]

    third = _WIDTH // 3
    return [
        _graph("Failed invocations", of_each("Errors", "Sum"), unit="a minute", width=third),
        _graph("Refused invocations", of_each("Throttles", "Sum"), unit="a minute", width=third),
        _graph("Longest invocation", of_each("Duration", "Maximum"), unit="milliseconds", width=third),
    ]


def _dead_letters(queues: Sequence[str]) -> cloudwatch.IWidget:
    depths = [
        metric("AWS/SQS", "ApproximateNumberOfMessagesVisible", {"QueueName": queue}, "Maximum") for queue in queues
    ]
    return _graph("Schedule dead letters", depths, unit="messages", width=_WIDTH // 3)


def _database(cluster_identifier: str | None) -> list[cloudwatch.IWidget]:
    """Nothing for a database that is not the deployment's own."""
    if cluster_identifier is None:
        return []
    one, all_of_it = writer(cluster_identifier), {"DBClusterIdentifier": cluster_identifier}
    load = [
        metric("AWS/RDS", "CPUUtilization", one, "Average", label="CPU of the writer, percent"),
        metric("AWS/RDS", "ServerlessDatabaseCapacity", all_of_it, "Average", label="capacity, ACU"),
    ]
    connections = [metric("AWS/RDS", "DatabaseConnections", one, "Maximum", label="connections to the writer")]
    return [
        _graph("Database load", load, unit="percent, ACU", width=_WIDTH // 3),
        _graph("Database connections", connections, unit="connections", width=_WIDTH // 3),
    ]
