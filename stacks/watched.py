"""What the monitoring stack needs to know of the jobs stack."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_lambda as lambda_
from aws_cdk import aws_sqs as sqs


@dataclass(frozen=True)
class Watched:
    """`functions` by name: "sweeper", "monitor", "migrator", and "poller <name>" for every poller.

    `cluster_identifier` is None where the database's own metrics are not ours to watch.
    """

    functions: Mapping[str, lambda_.Function]
    dead_letter_queues: tuple[sqs.Queue, ...]
    schedule_group: str
    cluster_identifier: str | None
