"""Reads `policy.toml` files. Every error names the file, the key, the rule and, where one is near, the fix."""

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from stopline.errors import PolicyError
from stopline.limits import LAMBDA_TIMEOUT_SECONDS
from stopline.policy.hooks import HANDLER, reconciles
from stopline.policy.keys import Key, declared_keys, section_types
from stopline.policy.model import Policy
from stopline.policy.rules import check_policy, check_together
from stopline.policy.sections import NAME_FORM, NAME_PATTERN, OWN_POLLER
from stopline.policy.values import shown

FILE_NAME = "policy.toml"
_SHORTEST_POLLER = timedelta(minutes=1)
_LONGEST_POLLER = timedelta(seconds=LAMBDA_TIMEOUT_SECONDS)
_TICK = timedelta(seconds=10)
"""The statement timeout of the worker's role: a source that is always this slow still leaves room for an attempt."""
_SECTIONS = section_types(Policy)
_KEYS = {declared.name: declared for declared in declared_keys(Policy)}


def load_policies(jobs_dir: Path) -> dict[str, Policy]:
    """The policy of every kind, by the name of its folder. Folders that start with "." or "_" are not kinds."""
    if not jobs_dir.is_dir():
        raise PolicyError(str(jobs_dir), "folder", "does not exist; it must hold one folder for each kind")
    folders = sorted(entry for entry in jobs_dir.iterdir() if entry.is_dir() and entry.name[0] not in "._")
    policies = {folder.name: load_policy(folder / FILE_NAME) for folder in folders}
    check_together(policies)
    return policies


def load_policy(path: Path) -> Policy:
    """The policy in a file; the kind is named by the folder that the file lies in, and so is its handler found."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise PolicyError(str(path), "file", "does not exist; every folder of a kind needs one") from None
    except OSError as broken:
        raise PolicyError(str(path), "file", f"cannot be read: {broken.strerror}") from None
    except UnicodeDecodeError as broken:
        raise PolicyError(str(path), "file", f"is not UTF-8 at byte {broken.start}; save it as UTF-8") from None
    policy = parse_policy(path.parent.name, text, str(path))
    return replace(policy, reconciles=reconciles(path.parent / HANDLER))


def parse_policy(name: str, text: str, file: str) -> Policy:
    """The policy that TOML text declares for the kind `name`; `file` is what errors call it."""
    try:
        declared = tomllib.loads(text, parse_float=_exact)
    except (tomllib.TOMLDecodeError, RecursionError) as broken:
        raise PolicyError(file, "TOML", str(broken) or "is nested too deep") from None
    return build_policy(name, declared, file)


def overlay(policy: Policy, changes: Mapping[str, Any]) -> Policy:
    """The policy as if its file had said `changes` too, shaped like the file: {"limits": {"max_attempts": 3}}.

    All rules apply again, and defaults that depend on other keys follow them. None takes a key back to its default.
    """
    merged: dict[str, Any] = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in policy.declared.items()
    }
    for key, value in changes.items():
        if key in _SECTIONS and isinstance(value, Mapping):
            merged[key] = _without_none({**merged.get(key, {}), **value})
        else:
            merged[key] = value
    changed = build_policy(policy.name, _without_none(merged), f"{policy.file or policy.name} with an overlay")
    return replace(changed, reconciles=policy.reconciles)


def build_policy(name: str, declared: Mapping[str, Any], file: str) -> Policy:
    """The policy of values as TOML gives them."""
    if re.fullmatch(NAME_PATTERN, name) is None:
        raise PolicyError(file, "kind", f"its folder's name must be {NAME_FORM}; got {shown(name)}")
    if name == OWN_POLLER:
        raise PolicyError(
            file, "kind", f'must not be named "{OWN_POLLER}", which says that a kind has a poller of its own'
        )
    _refuse_unknown(declared, file)
    values = {declared_key.name: _value(declared_key, declared, file) for declared_key in _KEYS.values()}
    sections = {
        section: kind(**{key.attribute: values[key.name] for key in _KEYS.values() if key.section == section})
        for section, kind in _SECTIONS.items()
        if section
    }
    top = {key.attribute: values[key.name] for key in _KEYS.values() if not key.section}
    policy = Policy(name=name, file=file, declared=declared, **top, **sections)
    check_policy(policy)
    return policy


def _value(key: Key, declared: Mapping[str, Any], file: str) -> Any:
    table = declared.get(key.section, {}) if key.section else declared
    if key.attribute in table:
        try:
            return key.type.read(table[key.attribute])
        except ValueError as broken:
            raise PolicyError(file, key.name, str(broken)) from None
    if key.name == "run.poller_timeout":
        run = {part: _value(_KEYS[f"run.{part}"], declared, file) for part in ("timeout", "margin")}
        return max(_SHORTEST_POLLER, min(run["timeout"] + run["margin"] + _TICK, _LONGEST_POLLER))
    if key.required:
        where = f" in [{key.section}]" if key.section else " at the top of the file"
        raise PolicyError(file, key.name, f"is missing; set {key.attribute}{where} to {key.type.describe()}")
    return key.default


def _refuse_unknown(declared: Mapping[str, Any], file: str) -> None:
    for name, value in declared.items():
        if name in _SECTIONS and name:
            if not isinstance(value, Mapping):
                raise PolicyError(file, name, f"is a section, write its keys below a line [{name}]; got {shown(value)}")
            for inner in value:
                _refuse_unknown_key(f"{name}.{inner}", file)
        elif isinstance(value, Mapping) and name not in _KEYS:
            raise PolicyError(
                file, f"[{name}]", f"is an unknown section{_nearest(name, list(_SECTIONS), list(_SECTIONS))}"
            )
        else:
            _refuse_unknown_key(name, file)


def _refuse_unknown_key(name: str, file: str) -> None:
    if name in _KEYS:
        return
    section, _, bare = name.rpartition(".")
    for key in _KEYS.values():
        if key.attribute == bare:
            place = f"[{key.section}]" if key.section else "the top of the file, above all sections"
            raise PolicyError(file, name, f"is not a key here; {bare} belongs in {place}")
    siblings = [key.attribute for key in _KEYS.values() if key.section == section]
    everywhere = [key.attribute for key in _KEYS.values()]
    raise PolicyError(file, name, f"is an unknown key{_nearest(bare, siblings, siblings, everywhere)}")


def _nearest(word: str, candidates: list[str], listed: list[str], others: Sequence[str] = ()) -> str:
    for names in (candidates, others):
        close = difflib.get_close_matches(word, [name for name in names if name], n=1, cutoff=0.6)
        if close:
            return f'; did you mean "{_full(close[0], names is others)}"?'
    return f"; known ones are {', '.join(sorted(name for name in listed if name))}"


def _full(attribute: str, elsewhere: bool) -> str:
    if not elsewhere:
        return attribute
    return next(key.name for key in _KEYS.values() if key.attribute == attribute)


def _without_none(table: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in table.items() if value is not None}


def _exact(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        return Decimal("NaN")
