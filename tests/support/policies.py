"""Policies for test kinds: plain values, changed by column name."""

from collections.abc import Mapping
from typing import Any

import psycopg

POLICY = """
owner = "tests"
description = "a kind for tests"
idempotent = true

[run]
timeout = "30s"
"""


def policy_row(kind: str, changes: Mapping[str, object]) -> dict[str, object]:
    """The policy row of a kind with every default, and `changes` on top. Unknown columns are refused."""
    from stopline.policy.parse import parse_policy

    row: dict[str, object] = {**parse_policy(kind, POLICY, f"{kind}/policy.toml").to_row(), "name": kind}
    unknown = changes.keys() - row.keys()
    if unknown:
        raise TypeError(f"not columns of stopline.kind: {', '.join(sorted(unknown))}")
    return row | dict(changes)


def sync(conn: psycopg.Connection[Any], row: Mapping[str, object]) -> None:
    """Deploys one kind's row, leaving the others alone."""
    raise NotImplementedError
