"""The configuration: where values come from, and that a wrong one is refused by its name."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from stacks.config import ROOT, ConfigError, ExistingDatabase, NewDatabase
from stacks.config_keys import KEYS
from stacks.config_load import read_config
from stacks.config_reference import reference
from tests.support.synth import EXAMPLES

EXISTING = "examples/existing-database.json"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_is_a_valid_configuration(example: str) -> None:
    config = read_config({"config": f"examples/{example}.json"})
    assert isinstance(config.database, ExistingDatabase) == (example == "existing-database")


def test_a_key_on_the_command_line_wins_over_the_file() -> None:
    config = read_config({"config": "examples/nat.json", "database.readers": "3", "log_retention_days": "7"})
    assert isinstance(config.database, NewDatabase)
    assert (config.database.readers, config.log_retention_days) == (3, 7)
    assert config.database.max_acu == 16, "the file's other keys stay"


def test_lists_flags_and_tags_are_read_from_the_command_line_too() -> None:
    config = read_config({"kinds": "one, two", "protect": "false", "tags": '{"team": "billing"}'})
    assert (config.kinds, config.protect, config.tags) == (("one", "two"), False, {"team": "billing"})


def test_keys_of_the_cdk_itself_are_passed_over() -> None:
    read_config({"@aws-cdk/core:x": True, "aws:cdk:enable-path-metadata": True, "availability-zones:account=1": []})


WRONG: list[tuple[dict[str, Any], str, str]] = [
    ({"egress": "vpn"}, "egress = 'vpn'", '"none" or "bedrock" or "nat" or "existing"'),
    ({"architecture": "arm"}, "architecture = 'arm'", '"arm64" or "x86_64"'),
    ({"python": "3.13"}, "python = '3.13'", '"3.14"'),
    ({"account": "12345"}, "account = '12345'", "an account id of 12 digits"),
    ({"region": "Frankfurt"}, "region = 'Frankfurt'", "a region such as eu-central-1"),
    ({"prefix": "9lives"}, "prefix = '9lives'", "a letter, then"),
    ({"log_retention_days": "31"}, "log_retention_days = '31'", "one of 1, 3, 5, 7, 14, 30"),
    ({"alarm_email": "nobody"}, "alarm_email = 'nobody'", "an e-mail address"),
    ({"protect": "maybe"}, "protect = 'maybe'", "true or false"),
    ({"kinds": "Close"}, "kinds = 'Close'", "a kind, as its folder is called"),
    ({"kinds": []}, "kinds = []", "at least 1"),
    ({"kinds_dir": "nowhere"}, "kinds_dir = 'nowhere'", "is not a folder"),
    ({"tags": {"aws:x": "y"}}, "tags = {'aws:x': 'y'}", "no name starts with aws:"),
    ({"database.readers": 16}, "database.readers = 16", "a whole number from 0 to 15"),
    ({"database.readers": True}, "database.readers = True", "a whole number"),
    ({"database.max_acu": "2.25"}, "database.max_acu = '2.25'", "a multiple of 0.5"),
    ({"database.max_acu": "nan"}, "database.max_acu = 'nan'", "a multiple of 0.5"),
    ({"database.max_acu": 1, "database.min_acu": 2}, "database.max_acu = 1.0", "not be below database.min_acu = 2"),
    ({"database.engine_version": "15.4"}, "database.engine_version = '15.4'", "from 16 to 18"),
    ({"database.vpc_cidr": "8.8.0.0/16"}, "database.vpc_cidr = '8.8.0.0/16'", "private IPv4"),
    ({"database.vpc_cidr": "10.0.0.1/16"}, "database.vpc_cidr = '10.0.0.1/16'", "private IPv4"),
    ({"database.port": 80}, "database.port = 80", "from 1,150 to 65,535"),
    ({"database.name": "Stop-line"}, "database.name = 'Stop-line'", "a small letter"),
    ({"database.mode": "old"}, "database.mode = 'old'", '"new" or "existing"'),
    ({"database.endpoint": "db.example"}, "database.endpoint = 'db.example'", "database.mode = existing"),
    ({"egress": "existing"}, "egress = 'existing'", "database.mode = existing"),
    ({"config": EXISTING, "egress": "nat"}, "egress = 'nat'", "with database.mode = existing use existing"),
    ({"config": EXISTING, "database.min_acu": 1}, "database.min_acu = 1", "database.mode = new"),
    ({"config": EXISTING, "database.subnet_ids": "subnet-1"}, "database.subnet_ids = 'subnet-1'", "at least 2"),
    ({"config": EXISTING, "database.vpc_id": "main"}, "database.vpc_id = 'main'", "vpc-"),
    (
        {"config": EXISTING, "database.availability_zones": ["eu-central-1a", "eu-central-1b", "eu-central-1c"]},
        "database.availability_zones = ",
        "one zone for each of the 2",
    ),
    ({"config": EXISTING, "database.resource_id": "prx-0abc"}, "database.identity = None", "the cluster behind it"),
    ({"config": "examples/none.json"}, "config = 'examples/none.json'", "cannot be read"),
    ({"config": "README.md"}, "config = 'README.md'", "is not JSON"),
]


@pytest.mark.parametrize(("context", "named", "rule"), WRONG, ids=[named for _, named, _ in WRONG])
def test_a_wrong_value_is_refused_naming_key_value_and_rule(context: dict[str, Any], named: str, rule: str) -> None:
    with pytest.raises(ConfigError) as refused:
        read_config(context)
    assert named in str(refused.value)
    assert rule in str(refused.value)


def test_a_capacity_of_zero_is_refused_and_says_why_the_database_could_never_pause() -> None:
    """CO-13: the choice of the smallest capacity is written down where it is made."""
    with pytest.raises(
        ConfigError, match=r"from 0\.5 to 256 \(0 would let Aurora pause, which a poller of every minute"
    ):
        read_config({"database.min_acu": 0})


def test_an_unknown_key_is_refused_with_the_one_that_was_meant() -> None:
    with pytest.raises(ConfigError, match=r"egres \(-c\): no such key; did you mean egress\?"):
        read_config({"egres": "nat"})


def test_a_file_of_a_misspelt_key_names_the_file() -> None:
    path = ROOT / "cdk.out" / "misspelt.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"database": {"reader": 1}}))
    with pytest.raises(ConfigError, match=r"database\.reader \(cdk\.out/misspelt\.json\): no such key"):
        read_config({"config": "cdk.out/misspelt.json"})


@pytest.mark.parametrize("missing", ["endpoint", "resource_id", "vpc_id", "subnet_ids", "max_connections"])
def test_an_existing_database_is_described_whole(missing: str, tmp_path: Path) -> None:
    content = json.loads((ROOT / EXISTING).read_text())
    del content["database"][missing]
    (tmp_path / "config.json").write_text(json.dumps(content))
    with pytest.raises(ConfigError, match=rf"database\.{missing}: required with database\.mode = existing"):
        read_config({"config": str(tmp_path / "config.json")})


@pytest.mark.parametrize(
    ("smallest", "largest", "allowed"), [(0.5, 4, 756), (0.5, 16, 2000), (1, 16, 3024), (1, 256, 5000)]
)
def test_connections_are_counted_below_what_aurora_allows(smallest: float, largest: float, allowed: int) -> None:
    """Aurora allows 823 at 4 units and 3,360 at 16, never above 5,000, and 2,000 while the smallest is 0.5."""
    config = read_config({"database.min_acu": smallest, "database.max_acu": largest})
    assert config.database.max_connections == allowed


def test_every_key_of_the_configuration_is_in_the_reference() -> None:
    docs = (ROOT / "docs" / "configure.md").read_text(encoding="utf-8")
    assert reference() in docs
    assert len(re.findall(r"^\| `", reference(), re.MULTILINE)) == len(KEYS) + 1
