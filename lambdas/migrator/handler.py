"""Brings the database to what this deployment's SQL, policies and sources say. Run once per deploy. Event: {}."""

from typing import Any

import psycopg

from stopline.errortext import clean
from stopline.logs import get_logger
from stopline.migrate.reach import reach
from stopline.migrate.runner import Report, migrate
from stopline.policy.parse import load_policies
from stopline.settings import MigratorSettings, migrator_settings

ERROR_BYTES = 1500
"""CloudFormation shows 4,096 bytes of a reason, and the trigger adds its own."""


class MigrationFailed(Exception):
    """The deploy's migration did not finish. SQLSTATE first, if there is one."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns the schema's version and the report's lines, which it also logs."""
    try:
        report = _migrate(migrator_settings())
    except Exception as error:
        get_logger().exception("migrate_failed")
        state = error.sqlstate if isinstance(error, psycopg.Error) else None
        text = clean(f"{state} {error}" if state else str(error), ERROR_BYTES)
        raise MigrationFailed(text or type(error).__name__) from None
    result: dict[str, Any] = {
        "schema_version": report.schema_version,
        "lines": report.lines,
        "warnings": report.warnings,
    }
    get_logger().info("migrate", **result)
    return result


def _migrate(settings: MigratorSettings) -> Report:
    policies = load_policies(settings.jobs_dir)
    files = {kind: settings.jobs_dir / kind / "source.sql" for kind in policies}
    sources = {kind: file.read_text(encoding="utf-8") for kind, file in files.items() if file.exists()}
    with reach(settings.target) as conn:
        return migrate(conn, settings.sql_dir, policies, sources, identity=settings.installation)
