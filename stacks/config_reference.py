"""The reference of the deployment's configuration as Markdown, made from the declarations so that it cannot differ."""

from stacks.config_keys import KEYS, REQUIRED, Key
from stacks.config_load import DEFAULT_FILE

_HEAD = "| key | default | value | meaning |\n|---|---|---|---|"
_SCOPE = {"any": "", "new": "New database. ", "existing": "Existing database. "}


def reference() -> str:
    """One table with every key: its name, default, value and meaning."""
    file = (
        f"| `config` | {DEFAULT_FILE} | a JSON file, relative to the project's folder | Where the other keys stand. |"
    )
    return "\n".join([_HEAD, file, *(_line(key) for key in KEYS)])


def _line(key: Key) -> str:
    return f"| `{key.name}` | {_default(key)} | {key.value.rule} | {_SCOPE[key.only]}{key.meaning} |"


def _default(key: Key) -> str:
    if key.default is REQUIRED:
        return "(required)"
    if key.default is None or key.default == {}:
        return "none"
    if isinstance(key.default, bool):
        return str(key.default).lower()
    return f"{key.default:g}" if isinstance(key.default, float) else str(key.default)
