"""The saved queries of `stacks/log_queries.py`, in the stack whose log groups they read.

In another stack each log group would be an output of its own, and a stack has 200 of those.
"""

from collections.abc import Iterator, Mapping, Sequence

from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.log_queries import QUERIES, LogQuery, Logs

MOST_LOG_GROUPS = 50
"""Logs Insights reads so many at once; the rest is read by a further query with a number in its name."""


class SavedQueries(Construct):
    """One query for each of `QUERIES`, over the log groups of the functions that it is about."""

    def __init__(
        self, scope: Construct, id: str, *, prefix: str, log_groups: Mapping[Logs, Sequence[logs.ILogGroup]]
    ) -> None:
        super().__init__(scope, id)
        for query in QUERIES:
            for name, groups in _split(query, log_groups[query.logs]):
                logs.CfnQueryDefinition(
                    self,
                    "".join(part.capitalize() for part in name.split()),
                    # CloudWatch shows a name with slashes as folders.
                    name=f"{prefix}/{name}",
                    query_string=query.text,
                    log_group_names=[group.log_group_name for group in groups],
                )


def _split(query: LogQuery, groups: Sequence[logs.ILogGroup]) -> Iterator[tuple[str, Sequence[logs.ILogGroup]]]:
    for number, start in enumerate(range(0, len(groups), MOST_LOG_GROUPS), start=1):
        yield query.name if number == 1 else f"{query.name} {number}", groups[start : start + MOST_LOG_GROUPS]
