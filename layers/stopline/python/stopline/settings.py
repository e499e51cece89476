"""What a Lambda is told by its environment. This is the only module that reads it.

Every function has one frozen settings class. A missing or bad value raises `SettingsError`, which names the variable,
the rule and the fix.
"""

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from stopline.errors import StoplineError
from stopline.logs import SERVICE
from stopline.redact import register_secret
from stopline.store.ca import BUNDLE
from stopline.store.target import Target

ROLE_PREFIX = "STOPLINE_ROLE_"
_KIND = re.compile(r"[a-z][a-z0-9_]{0,47}")
_SECRET_NAME = re.compile(
    r"(?:token|secret|password|passwd|passphrase|(?:api|access|private|signing)_?key)$", re.IGNORECASE
)
_SHORTEST_SECRET = 8
_CREDENTIALS = frozenset({"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"})


class SettingsError(StoplineError):
    """A variable of the function's environment is missing or breaks its rule."""

    def __init__(self, variable: str, rule: str, fix: str) -> None:
        super().__init__(f"{variable}: {rule}. {fix}")
        self.variable = variable


@dataclass(frozen=True, slots=True)
class PollerSettings:
    """`roles` maps a kind to the database role of its `job.connect()`; `environment` is what its jobs see."""

    target: Target
    installation: str
    kinds: tuple[str, ...]
    jobs_dir: Path
    region: str | None
    worker: str
    roles: Mapping[str, str]
    environment: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class SweeperSettings:
    """What the sweeper needs."""

    target: Target


@dataclass(frozen=True, slots=True)
class MonitorSettings:
    """What the monitor needs."""

    target: Target


@dataclass(frozen=True, slots=True)
class BootstrapSettings:
    """What the bootstrap needs: `target` names the database's master."""

    target: Target
    sql_dir: Path


@dataclass(frozen=True, slots=True)
class MigratorSettings:
    """`installation` is the identity that pollers of this deployment claim with."""

    target: Target
    installation: str
    sql_dir: Path
    jobs_dir: Path


def poller_settings(environment: Mapping[str, str] | None = None) -> PollerSettings:
    """Settings of a poller, from the process environment unless another is given."""
    env = _environment(environment)
    for name, value in env.items():
        if name in _CREDENTIALS or (_SECRET_NAME.search(name) and len(value) >= _SHORTEST_SECRET):
            register_secret(value)
    kinds = _kinds(env)
    return PollerSettings(
        target=_target(env, "poller"),
        installation=_text(env, "STOPLINE_INSTALLATION", "Give the identity that the database was migrated with."),
        kinds=kinds,
        jobs_dir=_folder(env, "STOPLINE_JOBS_DIR"),
        region=env.get("AWS_REGION") or None,
        worker=env.get("AWS_LAMBDA_LOG_STREAM_NAME") or f"{os.uname().nodename}:{os.getpid()}",
        roles={kind: env[name] for kind in kinds if env.get(name := ROLE_PREFIX + kind.upper())},
        environment=job_environment(env),
    )


def sweeper_settings(environment: Mapping[str, str] | None = None) -> SweeperSettings:
    """Settings of the sweeper."""
    return SweeperSettings(target=_target(_environment(environment), "sweeper"))


def monitor_settings(environment: Mapping[str, str] | None = None) -> MonitorSettings:
    """Settings of the monitor."""
    return MonitorSettings(target=_target(_environment(environment), "monitor"))


def migrator_settings(environment: Mapping[str, str] | None = None) -> MigratorSettings:
    """Settings of the migrator."""
    env = _environment(environment)
    return MigratorSettings(
        target=_target(env, "migrator"),
        installation=_text(env, "STOPLINE_INSTALLATION", "Give this deployment's identity."),
        sql_dir=_folder(env, "STOPLINE_SQL_DIR"),
        jobs_dir=_folder(env, "STOPLINE_JOBS_DIR"),
    )


def bootstrap_settings(environment: Mapping[str, str] | None = None) -> BootstrapSettings:
    """Settings of the bootstrap."""
    env = _environment(environment)
    return BootstrapSettings(target=_target(env, "bootstrap"), sql_dir=_folder(env, "STOPLINE_SQL_DIR"))


def service_name(environment: Mapping[str, str] | None = None) -> str:
    """The `service` dimension of this deployment's metrics. It keeps two deployments in one account apart."""
    return _environment(environment).get("STOPLINE_SERVICE") or SERVICE


def job_environment(env: Mapping[str, str]) -> Mapping[str, str]:
    """What a job reads as `job.environment`: all but Stopline's own variables and the function's credentials."""
    return MappingProxyType(
        {name: value for name, value in env.items() if not name.startswith("STOPLINE_") and name not in _CREDENTIALS}
    )


def _environment(given: Mapping[str, str] | None) -> Mapping[str, str]:
    return dict(os.environ) if given is None else given


def _target(env: Mapping[str, str], function: str) -> Target:
    auth = _auth(env)
    region = env.get("AWS_REGION") or None
    if auth == "iam" and region is None:
        raise SettingsError("AWS_REGION", "is required with STOPLINE_DB_AUTH=iam", "Lambda sets it; set it elsewhere.")
    return Target(
        host=_text(env, "STOPLINE_DB_HOST", "Give the database's host name, or the folder of its socket."),
        port=_port(env),
        dbname=_text(env, "STOPLINE_DB_NAME", "Give the database's name."),
        user=_text(env, "STOPLINE_DB_USER", f"Give the role that the {function} connects as."),
        auth=auth,
        region=region,
        sslrootcert=_root_certificates(env, auth),
        application_name=f"stopline-{function}",
    )


def _auth(env: Mapping[str, str]) -> Literal["none", "iam"]:
    value = env.get("STOPLINE_DB_AUTH", "")
    if value == "iam":
        return "iam"
    if value == "none":
        return "none"
    raise SettingsError("STOPLINE_DB_AUTH", f"must be none or iam, not {value!r}", "Use iam for Aurora.")


def _root_certificates(env: Mapping[str, str], auth: str) -> str | None:
    """The named file, or with IAM the bundle of Amazon's roots that ships in the layer."""
    named = env.get("STOPLINE_DB_SSLROOTCERT")
    if named and not Path(named).is_file():
        raise SettingsError(
            "STOPLINE_DB_SSLROOTCERT",
            f"{named!r} is not a file",
            "Name a PEM file in the function's package, or unset it for Amazon's roots, which ship in the layer.",
        )
    return named or (str(BUNDLE) if auth == "iam" else None)


def _port(env: Mapping[str, str]) -> int:
    value = env.get("STOPLINE_DB_PORT", "")
    if not re.fullmatch(r"[0-9]{1,5}", value) or not 0 < int(value) < 65536:
        raise SettingsError(
            "STOPLINE_DB_PORT", f"must be a port from 1 to 65535, not {value!r}", "PostgreSQL uses 5432."
        )
    return int(value)


def _kinds(env: Mapping[str, str]) -> tuple[str, ...]:
    fix = "List the poller's kinds with commas, as their folders under STOPLINE_JOBS_DIR are called."
    kinds = tuple(part.strip() for part in _text(env, "STOPLINE_KINDS", fix).split(","))
    for kind in kinds:
        if not _KIND.fullmatch(kind):
            rule = f"{kind!r} is not a kind's name (a lower-case letter, then up to 47 of a-z, 0-9, _)"
            raise SettingsError("STOPLINE_KINDS", rule, fix)
    if len(set(kinds)) != len(kinds):
        raise SettingsError("STOPLINE_KINDS", "names a kind twice", fix)
    return kinds


def _folder(env: Mapping[str, str], variable: str) -> Path:
    path = Path(_text(env, variable, "Give the folder's path in the function's package."))
    if not path.is_dir():
        raise SettingsError(
            variable, f"{str(path)!r} is not a folder", "Give the folder's path in the function's package."
        )
    return path


def _text(env: Mapping[str, str], variable: str, fix: str) -> str:
    value = env.get(variable, "")
    if not value.strip():
        raise SettingsError(variable, "is required and not set", fix)
    return value
