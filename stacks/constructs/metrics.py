"""The metrics that alarms and widgets show, each with its exact dimensions."""

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch

from stacks.alarm_rules import METRICS

SERVICE = "stopline"
"""The `service` dimension that Powertools puts on everything the functions write."""


def total(name: str, label: str | None = None, statistic: str = "Maximum") -> cloudwatch.Metric:
    """One of the monitor's totals."""
    return metric(METRICS, name, {"service": SERVICE}, statistic, label=label)


def metric(
    namespace: str,
    name: str,
    dimensions: Mapping[str, str],
    statistic: str,
    *,
    period_s: int = 60,
    label: str | None = None,
) -> cloudwatch.Metric:
    """Any metric. `period_s` is the length of a reading in seconds."""
    return cloudwatch.Metric(
        namespace=namespace,
        metric_name=name,
        dimensions_map=dict(dimensions),
        statistic=statistic,
        period=Duration.seconds(period_s),
        label=label,
    )


def writer(cluster_identifier: str) -> dict[str, str]:
    """The dimensions of whichever instance of an Aurora cluster is the writer."""
    return {"DBClusterIdentifier": cluster_identifier, "Role": "WRITER"}
