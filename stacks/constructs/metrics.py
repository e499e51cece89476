"""The metrics that alarms and widgets show, each with its exact dimensions."""

from collections.abc import Mapping

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch


def service(prefix: str) -> dict[str, str]:
    """The dimension of all that a deployment's functions write: their STOPLINE_SERVICE is its prefix."""
    return {"service": prefix}


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
