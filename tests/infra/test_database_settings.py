"""What single keys change in the database stack, and what none of them may change."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import aws_cdk as cdk
import pytest

from stacks.config_load import read_config
from stacks.database import DatabaseStack
from tests.support.synth import ROOT, Template
from tests.support.templates import of_type, only

CLUSTER = "AWS::RDS::DBCluster"
ENDPOINT = "AWS::EC2::VPCEndpoint"
EXISTING = "examples/existing-database.json"


def database(context: Mapping[str, Any]) -> Template:
    """The template of the database stack alone."""
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"], auto_synth=False)
    DatabaseStack(app, "Database", config=read_config(context))
    template: Template = json.loads(Path(app.synth().get_stack_by_name("Database").template_full_path).read_text())
    return template


@pytest.mark.parametrize("context", [{"egress": "none"}, {"egress": "nat"}, {"config": EXISTING}])
def test_a_way_to_secrets_manager_is_added_when_a_kind_has_secrets(context: dict[str, Any]) -> None:
    """LD-05: from isolated subnets Secrets Manager is reached by an endpoint, open to the functions only."""
    template = database({**context, "secrets_endpoint": True})
    endpoint = only(template, ENDPOINT)["Properties"]
    assert "secretsmanager" in json.dumps(endpoint["ServiceName"])
    assert endpoint["PrivateDnsEnabled"] is True
    (group,) = endpoint["SecurityGroupIds"]
    (rule,) = (
        each["Properties"]
        for each in of_type(template, "AWS::EC2::SecurityGroupIngress").values()
        if each["Properties"]["GroupId"] == group
    )
    assert (rule["FromPort"], rule["ToPort"]) == (443, 443)
    assert "Clients" in json.dumps(rule["SourceSecurityGroupId"])


def test_with_egress_none_functions_reach_the_database_and_nothing_else() -> None:
    template = database({"egress": "none"})
    assert not of_type(template, ENDPOINT)
    assert not of_type(template, "AWS::EC2::Route")
    (rule,) = (each["Properties"] for each in of_type(template, "AWS::EC2::SecurityGroupEgress").values())
    assert (rule["FromPort"], rule["ToPort"]) == (5432, 5432)


def test_no_egress_gives_the_clients_another_group_or_the_database_other_subnets() -> None:
    """Functions name the group and the subnets: what they stand in must not be replaced under them."""

    def lasting(egress: str) -> dict[str, Any]:
        resources = database({"egress": egress})["Resources"]
        kept = {name: each for name, each in resources.items() if name.startswith(("VpcIsolated", "Cluster"))}
        (group,) = (name for name in resources if name.startswith("Clients") and "to" not in name)
        kept[group] = resources[group]["Properties"]["GroupDescription"]
        return kept

    assert lasting("none") == lasting("bedrock") == lasting("nat")


def test_a_trial_without_protection_can_be_deleted_and_still_leaves_a_snapshot() -> None:
    cluster = only(database({"protect": False}), CLUSTER)
    assert cluster["Properties"]["DeletionProtection"] is False
    assert cluster["DeletionPolicy"] == "Snapshot"


def test_the_port_is_the_same_for_the_cluster_and_for_those_who_may_come_in() -> None:
    template = database({"database.port": 6432})
    assert only(template, CLUSTER)["Properties"]["Port"] == 6432
    (rule,) = (each["Properties"] for each in of_type(template, "AWS::EC2::SecurityGroupIngress").values())
    assert (rule["FromPort"], rule["ToPort"]) == (6432, 6432)


def test_nat_in_two_zones_gives_each_its_own_way_out() -> None:
    template = database({"egress": "nat", "database.nat_gateways": 2})
    assert len(of_type(template, "AWS::EC2::NatGateway")) == 2
    routes = of_type(template, "AWS::EC2::Route").values()
    gateways = {json.dumps(each["Properties"].get("NatGatewayId")) for each in routes} - {"null"}
    assert len(gateways) == 2


def test_a_version_that_the_cdks_own_list_does_not_know_is_no_error() -> None:
    """LD-04: AWS offers and withdraws versions between two releases of the CDK."""
    template = database({"database.engine_version": "18.6"})
    assert only(template, CLUSTER)["Properties"]["EngineVersion"] == "18.6"
    assert only(template, "AWS::RDS::DBClusterParameterGroup")["Properties"]["Family"] == "aurora-postgresql18"


@pytest.mark.parametrize(
    "place", [{}, {"region": "eu-central-1"}, {"account": "111122223333", "region": "eu-central-1"}]
)
def test_zones_are_those_of_wherever_it_is_deployed_and_never_looked_up(place: dict[str, str]) -> None:
    app = cdk.App(context=json.loads((ROOT / "cdk.json").read_text())["context"], auto_synth=False)
    config = read_config({"egress": "nat", **place})
    DatabaseStack(app, "Database", config=config, env=cdk.Environment(account=config.account, region=config.region))
    assembly = app.synth()
    template = json.loads(Path(assembly.get_stack_by_name("Database").template_full_path).read_text())
    zones = {
        json.dumps(each["Properties"]["AvailabilityZone"]) for each in of_type(template, "AWS::EC2::Subnet").values()
    }
    assert zones == {json.dumps({"Fn::Select": [number, {"Fn::GetAZs": ""}]}) for number in (0, 1)}
    assert "missing" not in json.loads((Path(assembly.directory) / "manifest.json").read_text())
