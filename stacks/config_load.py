"""Reads the configuration: one file, single keys on top, defaults below, rules between keys last."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from constructs import Node

from stacks.config import ROOT, Config, ConfigError, Egress, ExistingDatabase, NewDatabase
from stacks.config_keys import KEYS, REQUIRED, Key

_BY_NAME = {key.name: key for key in KEYS}
DEFAULT_FILE = "examples/default.json"


def load_config(node: Node) -> Config:
    """The configuration of the app at `node`. Raises ConfigError."""
    return read_config(dict(node.get_all_context()))


def read_config(context: Mapping[str, Any]) -> Config:
    """The configuration in a CDK context, whose keys of the CDK itself (with `:`, `@` or `/`) are passed over."""
    file = context.get("config", DEFAULT_FILE)
    given = {name: (value, "-c") for name, value in context.items() if name != "config" and not set(name) & set(":@/")}
    for name, value in _read_file(file).items():
        given.setdefault(name, (value, str(file)))
    for name, (_, where) in given.items():
        if name not in _BY_NAME:
            near = difflib.get_close_matches(name, _BY_NAME, n=1)
            raise ConfigError(f"{name} ({where}): no such key" + (f"; did you mean {near[0]}?" if near else ""))
    mode = _value(_BY_NAME["database.mode"], given)
    for name, (value, where) in given.items():
        only = _BY_NAME[name].only
        if only not in ("any", mode):
            raise ConfigError(f"{name} = {value!r} ({where}): stands only with database.mode = {only}, which is {mode}")
    values = {key.name: _value(key, given) for key in KEYS if key.only in ("any", mode)}
    return _checked(_config(mode, values))


def _read_file(file: Any) -> dict[str, Any]:
    path = ROOT / str(file)
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"config = {str(file)!r}: cannot be read ({error.strerror}); give a JSON file") from None
    except ValueError as error:
        raise ConfigError(f"config = {str(file)!r}: is not JSON: {error}") from None
    if not isinstance(content, dict):
        raise ConfigError(f"config = {str(file)!r}: must hold one JSON object")
    flat = {name: value for name, value in content.items() if name not in ("database", "//")}
    database = content.get("database", {})
    if not isinstance(database, dict):
        raise ConfigError(f"database = {database!r} ({file}): an object of keys")
    return flat | {f"database.{name}": value for name, value in database.items()}


def _value(key: Key, given: Mapping[str, tuple[Any, str]]) -> Any:
    if key.name not in given:
        if key.default is REQUIRED:
            raise ConfigError(f"{key.name}: required with database.mode = {key.only}. {key.meaning}")
        return key.default
    value, where = given[key.name]
    if value is None and key.default is None:
        return None
    try:
        return key.value.read(value)
    except (ValueError, TypeError):
        raise ConfigError(f"{key.name} = {value!r} ({where}): must be {key.value.rule}") from None


def _config(mode: Literal["new", "existing"], values: Mapping[str, Any]) -> Config:
    database = {name.removeprefix("database."): value for name, value in values.items() if "." in name}
    del database["mode"]
    top = {name: value for name, value in values.items() if "." not in name}
    top["kinds_dir"] = ROOT / Path(top["kinds_dir"])
    if mode == "existing":
        database["identity"] = database["identity"] or database["resource_id"]
        return Config(database=ExistingDatabase(**database), **top)
    return Config(database=NewDatabase(**database), **top)


def _checked(config: Config) -> Config:
    database, egress = config.database, config.egress
    if isinstance(database, NewDatabase):
        _must(egress != "existing", "egress", egress, "stands only with database.mode = existing")
        rule = f"must not be below database.min_acu = {database.min_acu:g}"
        _must(database.max_acu >= database.min_acu, "database.max_acu", database.max_acu, rule)
    else:
        _check_existing(database, egress)
    if not config.kinds_dir.is_dir():
        raise ConfigError(f"kinds_dir = {str(config.kinds_dir.relative_to(ROOT))!r}: is not a folder of the project")
    return config


def _check_existing(database: ExistingDatabase, egress: Egress) -> None:
    _must(egress != "nat", "egress", egress, "builds a VPC of its own; with database.mode = existing use existing")
    _must(
        len(database.subnet_ids) == len(database.availability_zones),
        "database.availability_zones",
        list(database.availability_zones),
        f"must name one zone for each of the {len(database.subnet_ids)} database.subnet_ids, in their order",
    )
    _must(
        not database.identity.startswith("prx-"),
        "database.identity",
        None,
        "is required when database.resource_id is a proxy's: give the resource id of the cluster behind it",
    )


def _must(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise ConfigError(f"{name} = {value!r}: {rule}")
