"""The reference of `policy.toml` as Markdown, made from the declarations so that it cannot differ from them."""

from datetime import timedelta
from decimal import Decimal

from stopline.durations import format_duration
from stopline.policy.keys import Key, declared_keys
from stopline.policy.model import Policy

_HEAD = "| section | key | default | value | meaning |\n|---|---|---|---|---|"


def reference() -> str:
    """One table with every key: its section, name, default, type with bounds, and meaning."""
    return "\n".join([_HEAD, *(_line(key) for key in declared_keys(Policy))])


def _line(key: Key) -> str:
    section = f"[{key.section}]" if key.section else "top"
    return f"| {section} | `{key.attribute}` | {_default(key)} | {key.type.describe()} | {key.doc} |"


def _default(key: Key) -> str:
    if key.default_text:
        return key.default_text
    if key.required:
        return "(required)"
    if key.default is None or key.default in ((), {}):
        return "none"
    if isinstance(key.default, bool):
        return str(key.default).lower()
    if isinstance(key.default, timedelta):
        return format_duration(key.default)
    return f"{key.default:f}" if isinstance(key.default, Decimal) else str(key.default)
