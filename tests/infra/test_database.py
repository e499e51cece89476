"""The database stack: what it holds in each mode, who may connect, and what cannot be lost."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.support.synth import Synthesis, Template
from tests.support.templates import of_type, only

Synthesized = Callable[[str], Synthesis]

CLUSTER = "AWS::RDS::DBCluster"
INSTANCE = "AWS::RDS::DBInstance"
GROUP = "AWS::EC2::SecurityGroup"
SUBNET = "AWS::EC2::Subnet"
NEW = ("default", "nat", "bedrock-endpoint", "x86")


def cluster(template: Template) -> dict[str, Any]:
    properties: dict[str, Any] = only(template, CLUSTER)["Properties"]
    return properties


def group_id(template: Template, description: str) -> dict[str, Any]:
    """How the template refers to the security group whose description starts so."""
    (name,) = (
        name
        for name, group in of_type(template, GROUP).items()
        if group["Properties"]["GroupDescription"].startswith(description)
    )
    return {"Fn::GetAtt": [name, "GroupId"]}


@pytest.mark.parametrize("example", NEW)
def test_nobody_has_a_password_and_there_is_no_secret(synthesized: Synthesized, example: str) -> None:
    """LD-05: nothing at deploy or at run time has to reach Secrets Manager from the isolated subnets."""
    template = synthesized(example).stack("Database")
    assert cluster(template)["MasterUserAuthenticationType"] == "iam-db-auth"
    assert cluster(template)["EnableIAMDatabaseAuthentication"] is True
    assert "MasterUserPassword" not in cluster(template)
    assert "ManageMasterUserPassword" not in cluster(template)
    for stack, each in synthesized(example).templates.items():
        assert not of_type(each, "AWS::SecretsManager::Secret"), stack
        assert "resolve:secretsmanager" not in json.dumps(each), stack


@pytest.mark.parametrize("example", NEW)
def test_the_version_is_set_by_us_alone_and_its_parameters_are_of_its_family(
    synthesized: Synthesized, example: str
) -> None:
    """LD-04: a minor upgrade behind our back would make the next deploy a downgrade, which is refused."""
    template = synthesized(example).stack("Database")
    version = cluster(template)["EngineVersion"]
    parameters = only(template, "AWS::RDS::DBClusterParameterGroup")["Properties"]
    assert parameters["Family"] == f"aurora-postgresql{version.split('.')[0]}"
    instances = of_type(template, INSTANCE)
    assert instances
    assert all(each["Properties"]["AutoMinorVersionUpgrade"] is False for each in instances.values())


def test_the_database_takes_tls_only_and_lies_encrypted_and_out_of_the_internet(synthesized: Synthesized) -> None:
    template = synthesized("default").stack("Database")
    parameters = only(template, "AWS::RDS::DBClusterParameterGroup")["Properties"]["Parameters"]
    assert parameters == {"rds.force_ssl": "1"}
    assert cluster(template)["StorageEncrypted"] is True
    for instance in of_type(template, INSTANCE).values():
        assert instance["Properties"]["PubliclyAccessible"] is False
    isolated = {
        name for name, subnet in of_type(template, SUBNET).items() if "Isolated" in json.dumps(subnet["Properties"])
    }
    used = only(template, "AWS::RDS::DBSubnetGroup")["Properties"]["SubnetIds"]
    assert {each["Ref"] for each in used} == isolated
    routes = json.dumps(of_type(template, "AWS::EC2::Route"))
    assert "Isolated" not in routes, "an isolated subnet has no route out"


def test_the_data_outlives_its_stack(synthesized: Synthesized) -> None:
    """LD-07: a stack is deleted only on purpose, and even then a snapshot stays."""
    template = synthesized("default").stack("Database")
    resource = only(template, CLUSTER)
    assert (resource["DeletionPolicy"], resource["UpdateReplacePolicy"]) == ("Snapshot", "Snapshot")
    assert resource["Properties"]["DeletionProtection"] is True
    assert resource["Properties"]["BackupRetentionPeriod"] == 14
    assert resource["Properties"]["CopyTagsToSnapshot"] is True


def test_a_change_that_would_replace_the_cluster_is_refused_while_functions_use_it(synthesized: Synthesized) -> None:
    """CloudFormation refuses to change an export that another stack imports; a weak reference would just follow."""
    jobs = json.dumps(synthesized("default").stack("Jobs"))
    exported = [
        output["Export"]["Name"]
        for output in synthesized("default").stack("Database")["Outputs"].values()
        if "Export" in output
    ]
    for value in ("EndpointAddress", "DBClusterResourceId", "GroupId"):
        (name,) = (name for name in exported if value in name)
        assert f'"Fn::ImportValue": "{name}"' in jobs


@pytest.mark.parametrize("example", NEW)
def test_only_the_functions_reach_the_database_and_only_its_port(synthesized: Synthesized, example: str) -> None:
    """LD-03: the rule from the functions to the cluster is there, and no other."""
    template = synthesized(example).stack("Database")
    database, clients = group_id(template, "Database of Stopline"), group_id(template, "Functions of Stopline")
    assert cluster(template)["VpcSecurityGroupIds"] == [database]
    rules = [each["Properties"] for each in of_type(template, "AWS::EC2::SecurityGroupIngress").values()]
    (rule,) = (rule for rule in rules if rule["GroupId"] == database)
    assert (rule["SourceSecurityGroupId"], rule["FromPort"], rule["ToPort"]) == (clients, 5432, 5432)
    inline = [group["Properties"].get("SecurityGroupIngress") for group in of_type(template, GROUP).values()]
    assert inline == [None] * len(inline)


def test_every_function_has_the_one_client_group(synthesized: Synthesized) -> None:
    functions = of_type(synthesized("default").stack("Jobs"), "AWS::Lambda::Function").values()
    in_vpc = [each["Properties"]["VpcConfig"] for each in functions if "VpcConfig" in each["Properties"]]
    groups = {json.dumps(config["SecurityGroupIds"]) for config in in_vpc}
    assert len(in_vpc) == len(functions) - 1, "all but the trigger's provider, which answers CloudFormation"
    assert len(groups) == 1


def test_whatever_connects_at_deploy_time_waits_for_the_writer(synthesized: Synthesized) -> None:
    """LD-03: the whole database stack, writer and rules included, is there before the first function connects."""
    manifest = json.loads((synthesized("default").folder / "manifest.json").read_text())["artifacts"]
    assert "StoplineDatabase" in manifest["StoplineJobs"]["dependencies"]
    assert "StoplineJobs" in manifest["StoplineMonitoring"]["dependencies"]


def test_readers_follow_the_writer_and_take_over_first(synthesized: Synthesized) -> None:
    instances = of_type(synthesized("nat").stack("Database"), INSTANCE)
    tiers = sorted(each["Properties"]["PromotionTier"] for each in instances.values())
    assert tiers == [0, 1], "tiers 0 and 1 scale with the writer"


def test_the_smallest_capacity_never_lets_the_database_pause(synthesized: Synthesized) -> None:
    """CO-13: a paused database refuses connections for 20 seconds, and a poller would wake it every minute."""
    for example in NEW:
        scaling = cluster(synthesized(example).stack("Database"))["ServerlessV2ScalingConfiguration"]
        assert scaling["MinCapacity"] >= 0.5, example
        assert "SecondsUntilAutoPause" not in scaling


def test_nat_added_later_moves_no_subnet_of_the_database(synthesized: Synthesized) -> None:
    def isolated(example: str) -> dict[str, str]:
        subnets = of_type(synthesized(example).stack("Database"), SUBNET)
        return {name: each["Properties"]["CidrBlock"] for name, each in subnets.items() if "Isolated" in name}

    assert isolated("bedrock-endpoint") == isolated("default")
    assert len(isolated("default")) == 2


def test_without_nat_nothing_has_a_way_out_but_the_endpoint(synthesized: Synthesized) -> None:
    template = synthesized("bedrock-endpoint").stack("Database")
    for kind in ("NatGateway", "InternetGateway", "Route", "EIP"):
        assert not of_type(template, f"AWS::EC2::{kind}"), kind
    endpoint = only(template, "AWS::EC2::VPCEndpoint")["Properties"]
    assert "bedrock-runtime" in json.dumps(endpoint["ServiceName"])
    assert endpoint["PrivateDnsEnabled"] is True
    clients = group_id(template, "Functions of Stopline")
    out = [each["Properties"] for each in of_type(template, "AWS::EC2::SecurityGroupEgress").values()]
    assert {rule["FromPort"] for rule in out if rule["GroupId"] == clients} == {443, 5432}


def test_only_functions_that_ask_for_it_stand_in_subnets_with_a_way_out(synthesized: Synthesized) -> None:
    jobs = synthesized("default").stack("Jobs")
    for name, function in of_type(jobs, "AWS::Lambda::Function").items():
        subnets = json.dumps(function["Properties"].get("VpcConfig", {}).get("SubnetIds", []))
        assert ("Functions" in subnets) == name.startswith("Poller"), name
        assert "Public" not in subnets, name


def test_an_existing_database_gets_one_rule_and_nothing_of_its_own(synthesized: Synthesized) -> None:
    synthesis = synthesized("existing-database")
    template = synthesis.stack("Database")
    types = sorted(resource["Type"] for resource in template["Resources"].values())
    assert types == ["AWS::EC2::SecurityGroup", "AWS::EC2::SecurityGroupIngress"]
    rule = only(template, "AWS::EC2::SecurityGroupIngress")["Properties"]
    assert rule["GroupId"] == "sg-0123456789abcdef0"
    assert rule["SourceSecurityGroupId"] == group_id(template, "Functions of Stopline")
    manifest = json.loads((synthesis.folder / "manifest.json").read_text())
    assert "missing" not in manifest, "nothing is looked up"


def test_functions_of_an_existing_database_connect_to_it_as_it_was_described(synthesized: Synthesized) -> None:
    jobs = synthesized("existing-database").stack("Jobs")
    pollers = [each for name, each in of_type(jobs, "AWS::Lambda::Function").items() if name.startswith("Poller")]
    for poller in pollers:
        variables = poller["Properties"]["Environment"]["Variables"]
        assert variables["STOPLINE_DB_HOST"] == "app.cluster-c1example.eu-central-1.rds.amazonaws.com"
        assert variables["STOPLINE_DB_NAME"] == "app"
        assert variables["STOPLINE_INSTALLATION"] == "cluster-EXAMPLEDATABASE0123456789"
        assert poller["Properties"]["VpcConfig"]["SubnetIds"] == [
            "subnet-0123456789abcdef0",
            "subnet-0fedcba9876543210",
        ]
