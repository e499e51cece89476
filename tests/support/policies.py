"""Policies for test kinds: plain values, changed by column name."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg

from stopline.policy.parse import parse_policy

POLICY = """
owner = "tests"
description = "a kind for tests"
idempotent = true

[run]
timeout = "30s"
"""


def policy_row(kind: str, changes: Mapping[str, object]) -> dict[str, object]:
    """The policy row of a kind with every default, and `changes` on top. Unknown columns are refused."""
    row: dict[str, object] = {
        "reconciles": False,
        **parse_policy(kind, POLICY, f"{kind}/policy.toml").to_row(),
        "name": kind,
    }
    unknown = changes.keys() - row.keys()
    if unknown:
        raise TypeError(f"not columns of stopline.kind: {', '.join(sorted(unknown))}")
    return row | dict(changes)


def sync(owner: psycopg.Connection[Any], rows: Iterable[Mapping[str, object]]) -> None:
    """Deploys these kinds, and retires all others, the way the migrator does. `owner` is the schema's owner."""
    policies = json.dumps(list(rows))
    owner.execute("select * from stopline.sync_policy(%s::jsonb, 'tests')", [policies])
    for row in json.loads(policies):
        while True:
            lowered = owner.execute("select stopline.lower_caps(%s)", [row["name"]]).fetchone()
            if lowered is None or not lowered[0]:
                break
