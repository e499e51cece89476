"""The Aurora PostgreSQL Serverless v2 cluster: nobody has a password, not even the master."""

from typing import cast

from aws_cdk import Duration, ReferenceStrength, RemovalPolicy, SecretValue
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from constructs import Construct

from stacks.config import Config, NewDatabase
from stacks.constructs.acknowledged import acknowledge

MASTER = "stopline_master"
"""The master's name. It bootstraps once; from then on nothing connects as it."""


def new_cluster(
    scope: Construct,
    vpc: ec2.IVpc,
    subnets: ec2.SubnetSelection,
    client: ec2.SecurityGroup,
    config: Config,
    database: NewDatabase,
) -> rds.DatabaseCluster:
    """A cluster that `client` reaches, kept by a final snapshot when its stack is destroyed."""
    group = ec2.SecurityGroup(
        scope,
        "DatabaseSecurityGroup",
        vpc=vpc,
        allow_all_outbound=False,
        description="Database of Stopline, for its functions",
    )
    engine = _engine(database.engine_version)
    cluster = rds.DatabaseCluster(
        scope,
        "Cluster",
        engine=engine,
        parameter_group=rds.ParameterGroup(
            scope,
            "Parameters",
            engine=engine,
            description="Stopline: TLS only",
            parameters={"rds.force_ssl": "1"},
        ),
        writer=_instance("Writer"),
        readers=[_instance(f"Reader{number}", follows=True) for number in range(1, database.readers + 1)],
        serverless_v2_min_capacity=database.min_acu,
        serverless_v2_max_capacity=database.max_acu,
        vpc=vpc,
        vpc_subnets=subnets,
        security_groups=[group],
        port=database.port,
        default_database_name=database.name,
        # The password is taken out below: without one given here, a secret would be made.
        credentials=rds.Credentials.from_password(MASTER, SecretValue.unsafe_plain_text("none")),
        iam_authentication=True,
        storage_encrypted=True,
        backup=rds.BackupProps(retention=Duration.days(database.backup_days)),
        copy_tags_to_snapshot=True,
        deletion_protection=config.protect,
        removal_policy=RemovalPolicy.SNAPSHOT,
    )
    # A change that would replace the cluster by an empty one (its name, its network) is refused by CloudFormation while
    # the functions import what it exports. With weak references it would go through.
    cluster.apply_cross_stack_reference_strength(ReferenceStrength.STRONG)
    resource = cast(rds.CfnDBCluster, cluster.node.default_child)
    resource.add_property_override("MasterUserAuthenticationType", "iam-db-auth")
    resource.add_property_deletion_override("MasterUserPassword")
    reason = "Its list of versions ages with the pin of the CDK; database.engine_version is a reviewed setting."
    acknowledge(resource, "CloudFormation-Validate::E9006", reason)
    cluster.connections.allow_from(client, ec2.Port.tcp(database.port), "functions of Stopline")
    return cluster


def _engine(version: str) -> rds.IClusterEngine:
    return rds.DatabaseClusterEngine.aurora_postgres(
        version=rds.AuroraPostgresEngineVersion.of(version, version.split(".")[0])
    )


def _instance(name: str, *, follows: bool = False) -> rds.IClusterInstance:
    """Minor versions come with a deploy: an upgrade behind its back makes the next deploy a refused downgrade. A reader
    that `follows` has the writer's capacity and takes over first."""
    if follows:
        return rds.ClusterInstance.serverless_v2(name, auto_minor_version_upgrade=False, scale_with_writer=True)
    return rds.ClusterInstance.serverless_v2(name, auto_minor_version_upgrade=False)
