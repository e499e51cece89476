"""Reads the health of the queue and writes it as metrics. Event: {}."""

from functools import cache
from typing import Any

from stopline.logs import get_logger
from stopline.monitor.emf import emit_health
from stopline.settings import monitor_settings
from stopline.store.connection import Session
from stopline.store.upkeep import UpkeepStore


@cache
def _store() -> UpkeepStore:
    return UpkeepStore(Session(monitor_settings().target))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns the totals, which it also logs. A database that cannot be read fails it before anything is written."""
    health = _store().health()
    emit_health(health.totals, health.kinds)
    result: dict[str, Any] = {"totals": health.totals, "kinds": len(health.kinds)}
    get_logger().info("monitor", **result)
    return result
