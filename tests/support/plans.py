"""What a call reads and how it was planned, as PostgreSQL itself reports it."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, LiteralString

import psycopg

from stopline_cli.local.prepare import Connection


def pages_read(conn: Connection, call: LiteralString, values: Sequence[object] = ()) -> int:
    """How many buffers one call touches, functions included, once the session's caches are warm."""
    explain: LiteralString = "explain (analyze, buffers, timing off, format json) " + call
    pages = 0
    for _ in range(3):
        row = conn.execute(explain, values).fetchone()
        assert row is not None
        plan = row[0][0]["Plan"]
        pages = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
    return pages


@contextmanager
def nested_plans(conn: Connection) -> Iterator[list[dict[str, Any]]]:
    """The plan of every statement that this superuser's session runs, also in functions, with what it read."""
    plans: list[dict[str, Any]] = []

    def hear(diagnostic: psycopg.errors.Diagnostic) -> None:
        text = diagnostic.message_primary or ""
        if "plan:" in text:
            plans.append(json.loads(text.partition("plan:")[2]))

    conn.execute("load 'auto_explain'")
    for setting, value in (
        ("log_min_duration", "0"),
        ("log_nested_statements", "on"),
        ("log_analyze", "on"),
        ("log_buffers", "on"),
        ("log_timing", "off"),
        ("log_format", "json"),
        ("log_level", "notice"),
    ):
        conn.execute("select set_config('auto_explain.' || %s, %s, false)", [setting, value])
    conn.add_notice_handler(hear)
    try:
        yield plans
    finally:
        conn.remove_notice_handler(hear)
        conn.execute("set auto_explain.log_min_duration = -1")


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A plan's nodes, from the top."""
    yield plan
    for child in plan.get("Plans", []):
        yield from nodes(child)
