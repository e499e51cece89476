"""Makes the database's roles and schemas as its master. Run by a deploy, before the migrator. Event: {}."""

from typing import Any

from stopline.errortext import clean
from stopline.logs import get_logger
from stopline.migrate.bootstrap import bootstrap
from stopline.migrate.reach import reach
from stopline.settings import bootstrap_settings

ERROR_BYTES = 1500
"""CloudFormation shows 4,096 bytes of a reason, and the trigger adds its own."""


class BootstrapFailed(Exception):
    """The roles could not be made. SQLSTATE first, if there is one."""


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns who made the roles, and where. Harmless when repeated."""
    try:
        settings = bootstrap_settings()
        with reach(settings.target) as conn:
            bootstrap(conn, settings.sql_dir)
    except Exception as error:
        get_logger().exception("bootstrap_failed")
        state = getattr(error, "sqlstate", None)
        text = clean(f"{state} {error}" if state else str(error), ERROR_BYTES)
        raise BootstrapFailed(text or type(error).__name__) from None
    result: dict[str, Any] = {"master": settings.target.user, "database": settings.target.dbname}
    get_logger().info("bootstrap", **result)
    return result
