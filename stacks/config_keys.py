"""Every key of the deployment's configuration, declared once: name, default, reader, meaning."""

from dataclasses import dataclass
from typing import Any, Literal

from stacks.config_values import Value, capacity, flag, network, number_of, one_of, several, tags, text, whole

REQUIRED: Any = object()
Only = Literal["any", "new", "existing"]

LOG_DAYS = (1, 3, 5, 7, 14, 30, 60, 90, 120, 150, 180, 365, 400, 545, 731, 1096, 1827, 2192, 2557, 2922, 3288, 3653)

_ROLE = r"[a-z_][a-z0-9_]{0,62}"
_NAME = r"[a-z][a-z0-9_]{0,62}"


@dataclass(frozen=True, slots=True)
class Key:
    """One key. `only` says with which kind of database it may stand."""

    name: str
    default: Any
    value: Value
    meaning: str
    only: Only = "any"


KEYS = (
    Key(
        "prefix",
        "Stopline",
        text(r"[A-Za-z][A-Za-z0-9-]{0,31}", "a letter, then up to 31 letters, digits and hyphens"),
        "Starts the names of the stacks; another one is another deployment.",
    ),
    Key(
        "account",
        None,
        text(r"[0-9]{12}", "an account id of 12 digits"),
        "The only account to deploy to; none is that of the caller.",
    ),
    Key(
        "region",
        None,
        text(r"[a-z]{2}(-[a-z]+)+-[0-9]", "a region such as eu-central-1"),
        "The only region to deploy to; none is that of the caller.",
    ),
    Key("architecture", "arm64", one_of("arm64", "x86_64"), "What the functions run on."),
    Key("python", "3.14", one_of("3.14"), "The Python of the functions."),
    Key(
        "egress",
        "none",
        one_of("none", "bedrock", "nat", "existing"),
        "Where functions can connect to besides the database: nowhere, Bedrock by an endpoint, the internet by NAT, or "
        "what the existing subnets reach.",
    ),
    Key(
        "secrets_endpoint",
        False,
        flag(),
        "Adds an endpoint for Secrets Manager, for kinds with secrets and no NAT.",
    ),
    Key(
        "kinds_dir",
        "lambdas/jobs",
        text(r"[^\s/][^\n]*", "a folder, relative to the project's"),
        "The folder of the kinds.",
    ),
    Key(
        "kinds",
        None,
        several(text(r"[a-z][a-z0-9_]{0,47}", "a kind, as its folder is called"), 1),
        "The kinds to deploy; none is all of them.",
    ),
    Key(
        "alarm_email",
        None,
        text(r"[^@\s]+@[^@\s]+\.[^@\s]+", "an e-mail address"),
        "Who is mailed when the composite alarm pages.",
    ),
    Key("log_retention_days", 30, number_of(LOG_DAYS), "How long logs are kept."),
    Key(
        "reserve_concurrency",
        False,
        flag(),
        "Reserves each poller's concurrency; needs an account whose quota has that much to spare.",
    ),
    Key("protect", True, flag(), "Protects the database and the stacks against deletion."),
    Key("tags", {}, tags(), "Tags of everything."),
    Key("database.mode", "new", one_of("new", "existing"), "Make a database, or use one that is there."),
    Key(
        "database.name",
        "stopline",
        text(_NAME, "a small letter, then up to 62 of a-z, 0-9 and _"),
        "The database inside the cluster.",
    ),
    Key("database.port", 5432, whole(1150, 65535), "Its port."),
    Key(
        "database.engine_version",
        "17.9",
        text(r"1[678]\.[0-9]{1,2}", "an Aurora PostgreSQL version from 16 to 18, such as 17.9"),
        "A reviewed setting: minor upgrades are made by a deploy, never by AWS's maintenance.",
        "new",
    ),
    Key(
        "database.min_acu",
        0.5,
        capacity(0.5, " (0 would let Aurora pause, which a poller of every minute never lets happen)"),
        "The smallest capacity, in ACU; what an idle deployment pays for.",
        "new",
    ),
    Key("database.max_acu", 4.0, capacity(1), "The largest capacity, in ACU; it also bounds connections.", "new"),
    Key("database.readers", 0, whole(0, 15), "Readers, which are what the writer fails over to.", "new"),
    Key("database.backup_days", 14, whole(1, 35), "How far back the cluster can be restored.", "new"),
    Key("database.vpc_cidr", "10.42.0.0/16", network(), "The addresses of the new VPC.", "new"),
    Key("database.nat_gateways", 1, whole(1, 2), "NAT gateways with egress nat; 2 outlive a zone.", "new"),
    Key(
        "database.endpoint",
        REQUIRED,
        text(r"[a-z0-9-]+(\.[a-z0-9-]+)+", "a host name, as certificates name it"),
        "The writer's endpoint, or a proxy's.",
        "existing",
    ),
    Key(
        "database.resource_id",
        REQUIRED,
        text(r"(cluster|db|prx)-[A-Za-z0-9]+", "a resource id: cluster-..., db-... or prx-..."),
        "The id in the ARN of rds-db:connect.",
        "existing",
    ),
    Key(
        "database.identity",
        None,
        text(r"(cluster|db)-[A-Za-z0-9]+", "a database's own resource id: cluster-... or db-..."),
        "What the pollers were deployed for; none is resource_id. Required behind a proxy.",
        "existing",
    ),
    Key(
        "database.master",
        None,
        text(_ROLE, "a role, in small letters"),
        "A role that signs in with IAM and may create roles, for the bootstrap; none where it was run by hand.",
        "existing",
    ),
    Key("database.vpc_id", REQUIRED, text(r"vpc-[0-9a-f]+", "a VPC's id: vpc-..."), "Its VPC.", "existing"),
    Key(
        "database.subnet_ids",
        REQUIRED,
        several(text(r"subnet-[0-9a-f]+", "a subnet's id: subnet-..."), 2),
        "Private subnets for the functions.",
        "existing",
    ),
    Key(
        "database.availability_zones",
        REQUIRED,
        several(text(r"[a-z]{2}(-[a-z]+)+-[0-9][a-z]", "a zone such as eu-central-1a"), 2),
        "Their zones, in the same order.",
        "existing",
    ),
    Key(
        "database.security_group_id",
        REQUIRED,
        text(r"sg-[0-9a-f]+", "a security group's id: sg-..."),
        "The database's security group: one rule is added to it.",
        "existing",
    ),
    Key(
        "database.max_connections",
        REQUIRED,
        whole(20, 100_000),
        "What `show max_connections` says there.",
        "existing",
    ),
)
