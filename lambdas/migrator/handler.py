"""Brings the database to what this deployment's SQL, policies and sources say. Run once per deploy. Event: {}.

Two more events are for people who may invoke it: `{"doctor": true}` compares and changes nothing, and
`{"adopt": {"actor": "...", "reason": "..."}}` gives a restored copy to this deployment.
"""

from typing import Any

import psycopg

from stopline.errortext import clean
from stopline.logs import get_logger
from stopline.migrate.adoption import adopt
from stopline.migrate.doctor import diagnose
from stopline.migrate.findings import worst
from stopline.migrate.reach import reach
from stopline.migrate.runner import migrate
from stopline.policy.parse import load_policies
from stopline.settings import MigratorSettings, migrator_settings
from stopline.store.connection import connect

ERROR_BYTES = 1500
"""CloudFormation shows 4,096 bytes of a reason, and the trigger adds its own."""


class MigrationFailed(Exception):
    """The deploy's migration did not finish. SQLSTATE first, if there is one."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns the schema's version and the report's lines, which it also logs; for other events, their answer."""
    try:
        return _answer(event or {}, migrator_settings())
    except Exception as error:
        get_logger().exception("migrate_failed")
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        text = clean(f"{state} {error}" if state else str(error), ERROR_BYTES)
        raise MigrationFailed(text or type(error).__name__) from None


def _answer(event: dict[str, Any], settings: MigratorSettings) -> dict[str, Any]:
    if "adopt" in event:
        return _adopt(settings, event["adopt"])
    policies = load_policies(settings.jobs_dir)
    files = {kind: settings.jobs_dir / kind / "source.sql" for kind in policies}
    sources = {kind: file.read_text(encoding="utf-8") for kind, file in files.items() if file.exists()}
    if "doctor" in event:
        with connect(settings.target) as conn:
            found = diagnose(conn, settings.sql_dir, policies, sources, identity=settings.installation)
        get_logger().info("doctor", worst=str(worst(found)))
        return {"findings": [finding.to_row() for finding in found]}
    with reach(settings.target) as conn:
        report = migrate(conn, settings.sql_dir, policies, sources, identity=settings.installation)
    result: dict[str, Any] = {
        "schema_version": report.schema_version,
        "lines": report.lines,
        "warnings": report.warnings,
    }
    get_logger().info("migrate", **result)
    return result


def _adopt(settings: MigratorSettings, asked: dict[str, str]) -> dict[str, Any]:
    with connect(settings.target) as conn:
        adoption = adopt(conn, settings.installation, asked.get("actor", ""), asked.get("reason", ""))
    result = adoption.to_row()
    get_logger().info("adopt", actor=asked["actor"], **result)
    return result
