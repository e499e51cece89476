"""Runs the due jobs of the kinds in STOPLINE_KINDS.

Event: {}, or {"enqueue": kind, "scheduled_for": time} for one occurrence of a periodic kind.
"""

from functools import cache
from typing import Any

from stopline.logs import get_logger
from stopline.monitor.emf import emit_poll
from stopline.settings import poller_settings
from stopline.worker.poll import Poller


@cache
def _poller() -> Poller:
    return Poller(poller_settings())


def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Returns the result line, which it also logs. Raises PollFailed when a kind cannot work."""
    result = _poller().poll(event, context.get_remaining_time_in_millis() / 1000, context.aws_request_id)
    get_logger().info("poll", **result)
    emit_poll(result["reconnects"])
    return result
