"""The network of a new database, and the doors in and out of either network."""

import ipaddress
from collections.abc import Mapping

from aws_cdk import ReferenceStrength
from aws_cdk import aws_ec2 as ec2
from constructs import Construct

from stacks.config import Config, ExistingDatabase, NewDatabase
from stacks.constructs.acknowledged import acknowledge

ISOLATED = "Isolated"
_FUNCTIONS = "Functions"
_PUBLIC = "Public"
_SLOTS = 3  # The network is cut into 2**3 parts, of which six are ever used.


def new_vpc(scope: Construct, config: Config, database: NewDatabase) -> ec2.Vpc:
    """Two zones with an isolated subnet each; with NAT, private and public ones after them.

    The order and the sizes are fixed: adding NAT later must not move the subnets that the database stands in.
    """
    nat = config.egress == "nat"
    mask = ipaddress.IPv4Network(database.vpc_cidr).prefixlen + _SLOTS
    parts = [ec2.SubnetConfiguration(name=ISOLATED, subnet_type=ec2.SubnetType.PRIVATE_ISOLATED, cidr_mask=mask)]
    if nat:
        private = ec2.SubnetType.PRIVATE_WITH_EGRESS
        parts.append(ec2.SubnetConfiguration(name=_FUNCTIONS, subnet_type=private, cidr_mask=mask))
        public = ec2.SubnetType.PUBLIC
        parts.append(
            ec2.SubnetConfiguration(name=_PUBLIC, subnet_type=public, cidr_mask=mask, map_public_ip_on_launch=False)
        )
    vpc = ec2.Vpc(
        scope,
        "Vpc",
        ip_addresses=ec2.IpAddresses.cidr(database.vpc_cidr),
        max_azs=2,
        nat_gateways=database.nat_gateways if nat else 0,
        subnet_configuration=parts,
        # Nothing uses the default group; emptying it would take a custom resource with a function of its own.
        restrict_default_security_group=False,
    )
    reason = "Only functions and their database are in it, and groups admit each; its flow logs would tell nothing new."
    acknowledge(vpc, "AwsSolutions-VPC7", reason)
    return vpc


def existing_vpc(scope: Construct, database: ExistingDatabase) -> tuple[ec2.IVpc, ec2.SubnetSelection]:
    """The network of an existing database and its subnets for functions, by their ids."""
    vpc = ec2.Vpc.from_vpc_attributes(
        scope, "Vpc", vpc_id=database.vpc_id, availability_zones=list(database.availability_zones)
    )
    subnets = [
        ec2.Subnet.from_subnet_attributes(scope, f"Subnet{number}", subnet_id=subnet_id, availability_zone=zone)
        for number, (subnet_id, zone) in enumerate(
            zip(database.subnet_ids, database.availability_zones, strict=True), start=1
        )
    ]
    for subnet in subnets:
        acknowledge(subnet, "Annotation::@aws-cdk/aws-ec2:noSubnetRouteTableId", "No route is added to it.")
    return vpc, ec2.SubnetSelection(subnets=subnets)


def subnets_by_egress(config: Config, isolated: ec2.SubnetSelection) -> Mapping[str, ec2.SubnetSelection]:
    """Where a function goes that asks for an egress: only those that need a way out stand in subnets that have one."""
    if config.egress == "nat":
        functions = ec2.SubnetSelection(subnet_group_name=_FUNCTIONS)
        return {"none": isolated, "bedrock": functions, "internet": functions}
    return {"none": isolated, "bedrock": isolated, "internet": isolated}


def client_group(scope: Construct, vpc: ec2.IVpc, config: Config) -> ec2.SecurityGroup:
    """The one security group of all functions: it names who may reach the database."""
    group = ec2.SecurityGroup(
        scope,
        "Clients",
        vpc=vpc,
        allow_all_outbound=config.egress in ("nat", "existing"),
        # Always the same: another description is another group.
        description="Functions of Stopline, which may connect to the database",
    )
    group.apply_cross_stack_reference_strength(ReferenceStrength.STRONG)
    return group


def add_endpoints(
    scope: Construct, vpc: ec2.IVpc, subnets: ec2.SubnetSelection, client: ec2.SecurityGroup, config: Config
) -> None:
    """Private ways to the AWS services that the configuration names, open to the functions only."""
    services = {
        "Bedrock": (config.egress == "bedrock", ec2.InterfaceVpcEndpointAwsService.BEDROCK_RUNTIME),
        "Secrets": (config.secrets_endpoint, ec2.InterfaceVpcEndpointAwsService.SECRETS_MANAGER),
    }
    for name, (wanted, service) in services.items():
        if not wanted:
            continue
        group = ec2.SecurityGroup(
            scope,
            f"{name}EndpointSecurityGroup",
            vpc=vpc,
            allow_all_outbound=False,
            description=f"Endpoint of {name}, for the functions of Stopline",
        )
        ec2.InterfaceVpcEndpoint(
            scope,
            f"{name}Endpoint",
            vpc=vpc,
            service=service,
            subnets=subnets,
            security_groups=[group],
            open=False,
            private_dns_enabled=True,
        )
        group.connections.allow_from(client, ec2.Port.tcp(443), "functions of Stopline")
