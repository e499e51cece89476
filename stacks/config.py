"""The deployment's typed configuration, built once in app.py.

It comes from one JSON file (context key `config`) and single keys on top of it (`cdk deploy -c egress=nat`). The keys
with their defaults and rules stand in `stacks/config_keys.py`.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from stopline.errors import StoplineError

ROOT = Path(__file__).parents[1]
"""The project's folder: paths in the configuration are relative to it."""

Egress = Literal["none", "bedrock", "nat", "existing"]


class ConfigError(StoplineError):
    """A key of the configuration is unknown, missing or breaks its rule. The message names key, value and rule."""


@dataclass(frozen=True, slots=True)
class NewDatabase:
    """An Aurora PostgreSQL Serverless v2 cluster that the deployment makes. Capacity is in ACU (2 GiB of memory)."""

    engine_version: str
    name: str
    port: int
    min_acu: float
    max_acu: float
    readers: int
    backup_days: int
    vpc_cidr: str
    nat_gateways: int

    @property
    def max_connections(self) -> int:
        """What Aurora allows at least: 189 a unit of the largest capacity, 2,000 while the smallest is 0.5."""
        return min(int(189 * self.max_acu), 2000 if self.min_acu <= 0.5 else 5000)


@dataclass(frozen=True, slots=True)
class ExistingDatabase:
    """A PostgreSQL cluster that is there already, described by ids: nothing is looked up.

    `resource_id` is the cluster's (cluster-...), or its proxy's (prx-...); then `identity` is the cluster's. `master`
    is a role that signs in with IAM and may create roles, None where sql/bootstrap.sql was run by hand.
    """

    endpoint: str
    port: int
    name: str
    resource_id: str
    identity: str
    master: str | None
    vpc_id: str
    subnet_ids: tuple[str, ...]
    availability_zones: tuple[str, ...]
    security_group_id: str
    max_connections: int


@dataclass(frozen=True, slots=True)
class Config:
    """One deployment. `kinds` None means every folder of `kinds_dir`."""

    prefix: str
    account: str | None
    region: str | None
    database: NewDatabase | ExistingDatabase
    egress: Egress
    secrets_endpoint: bool
    architecture: Literal["arm64", "x86_64"]
    python: str
    kinds_dir: Path
    kinds: tuple[str, ...] | None
    alarm_email: str | None
    log_retention_days: int
    reserve_concurrency: bool
    protect: bool
    tags: dict[str, str]
