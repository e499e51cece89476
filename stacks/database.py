"""The database stack: a new Aurora PostgreSQL cluster with its network, or the door to an existing one."""

from typing import Any

import jsii
from aws_cdk import CfnOutput, Fn, Stack
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.config import Config, ExistingDatabase, NewDatabase
from stacks.connection import DatabaseConnection
from stacks.constructs.cluster import MASTER, new_cluster
from stacks.constructs.network import (
    ISOLATED,
    add_endpoints,
    client_group,
    existing_vpc,
    new_vpc,
    subnets_by_egress,
)


class DatabaseStack(Stack):
    """What lasts: the data, the network, and the security group that names its clients."""

    connection: DatabaseConnection

    def __init__(self, scope: Construct, construct_id: str, *, config: Config, **kwargs: Any) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Stopline: the database and its network",
            termination_protection=config.protect,
            **kwargs,
        )
        if isinstance(config.database, NewDatabase):
            self.connection = self._new(config, config.database)
        else:
            self.connection = self._existing(config, config.database)
        self._outputs()

    @property
    @jsii.member(jsii_name="availabilityZones")
    def availability_zones(self) -> list[str]:
        """Two zones of wherever it is deployed. The CDK would look them up as soon as account and region are given."""
        return [Fn.select(number, Fn.get_azs()) for number in range(2)]

    def _new(self, config: Config, database: NewDatabase) -> DatabaseConnection:
        vpc = new_vpc(self, config, database)
        isolated = ec2.SubnetSelection(subnet_group_name=ISOLATED)
        client = client_group(self, vpc, config)
        add_endpoints(self, vpc, isolated, client, config)
        cluster = new_cluster(self, vpc, isolated, client, config, database)
        return DatabaseConnection(
            host=cluster.cluster_endpoint.hostname,
            port=database.port,
            name=database.name,
            resource_id=cluster.cluster_resource_identifier,
            identity=cluster.cluster_resource_identifier,
            master=MASTER,
            vpc=vpc,
            subnets=isolated,
            subnets_by_egress=subnets_by_egress(config, isolated),
            client_security_group=client,
            writer=cluster,
            max_connections=database.max_connections,
            cluster_identifier=cluster.cluster_identifier,
        )

    def _existing(self, config: Config, database: ExistingDatabase) -> DatabaseConnection:
        vpc, subnets = existing_vpc(self, database)
        client = client_group(self, vpc, config)
        add_endpoints(self, vpc, subnets, client, config)
        group = ec2.SecurityGroup.from_security_group_id(self, "DatabaseSecurityGroup", database.security_group_id)
        door = ec2.CfnSecurityGroupIngress(
            self,
            "FromFunctions",
            group_id=group.security_group_id,
            source_security_group_id=client.security_group_id,
            ip_protocol="tcp",
            from_port=database.port,
            to_port=database.port,
            description="functions of Stopline",
        )
        if not client.allow_all_outbound:
            client.add_egress_rule(group, ec2.Port.tcp(database.port), "the database")
        return DatabaseConnection(
            host=database.endpoint,
            port=database.port,
            name=database.name,
            resource_id=database.resource_id,
            identity=database.identity,
            master=database.master,
            vpc=vpc,
            subnets=subnets,
            subnets_by_egress=subnets_by_egress(config, subnets),
            client_security_group=client,
            writer=door,
            max_connections=database.max_connections,
            cluster_identifier=None,
        )

    def _outputs(self) -> None:
        connection = self.connection
        for name, value, meaning in (
            ("Endpoint", connection.host, "Where the database answers"),
            ("DatabaseName", connection.name, "The database inside the cluster"),
            ("ResourceId", connection.resource_id, "The id in the ARN of rds-db:connect"),
            ("VpcId", connection.vpc.vpc_id, "The network of the database and the functions"),
            ("IsolatedSubnets", Fn.join(",", self._subnet_ids()), "Subnets without a way out"),
            ("ClientSecurityGroup", connection.client_security_group.security_group_id, "Who may connect"),
        ):
            CfnOutput(self, name, value=value, description=meaning)

    def _subnet_ids(self) -> list[str]:
        vpc, subnets = self.connection.vpc, self.connection.subnets
        if subnets.subnets is not None:
            return [subnet.subnet_id for subnet in subnets.subnets]
        return list(vpc.select_subnets(subnet_group_name=subnets.subnet_group_name).subnet_ids)
