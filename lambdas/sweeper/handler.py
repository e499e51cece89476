"""Ends attempts whose lease ran out and rows past a limit, and deletes what is past its retention. Event: {}."""

from functools import cache
from typing import Any

from stopline.logs import get_logger
from stopline.settings import sweeper_settings
from stopline.store.connection import Session
from stopline.store.upkeep import UpkeepStore
from stopline.worker.sweeping import sweep


@cache
def _store() -> UpkeepStore:
    return UpkeepStore(Session(sweeper_settings().target))


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns the counts per transition and of what was deleted, which it also logs."""
    result = sweep(_store(), context.get_remaining_time_in_millis() / 1000)
    get_logger().info("sweep", **result)
    return result
