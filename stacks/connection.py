"""What the other stacks know of the database, whether it was made by `DatabaseStack` or was there before."""

from collections.abc import Mapping
from dataclasses import dataclass

from aws_cdk import aws_ec2 as ec2
from constructs import IDependable


@dataclass(frozen=True)
class DatabaseConnection:
    """Where the database is and who may reach it. Texts may be CDK tokens.

    `resource_id` stands in the ARN of `rds-db:connect`; `identity` is the value of STOPLINE_INSTALLATION. `master` is
    the role that bootstraps, None where an administrator did that by hand. `writer` is there when connections are
    answered: whatever connects at deploy time depends on it. `max_connections` is the server's limit.
    `cluster_identifier` is None where the database's own metrics are not ours to watch. `subnets` have no way out of
    their own; a function that asks for an egress ("none", "bedrock", "internet") stands in `subnets_by_egress[egress]`.
    """

    host: str
    port: int
    name: str
    resource_id: str
    identity: str
    master: str | None
    vpc: ec2.IVpc
    subnets: ec2.SubnetSelection
    subnets_by_egress: Mapping[str, ec2.SubnetSelection]
    client_security_group: ec2.ISecurityGroup
    writer: IDependable
    max_connections: int
    cluster_identifier: str | None
