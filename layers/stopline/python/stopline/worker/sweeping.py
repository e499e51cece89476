"""The sweeper's run: bounded calls, repeated while they find full loads and the time allows."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

from stopline.store.upkeep import UpkeepStore

SWEEP_LIMIT = 500
PURGE_LIMIT = 5000
_RESERVE_SECONDS = 10.0
_MOST_CALLS = 100


def sweep(store: UpkeepStore, seconds_left: float) -> dict[str, Any]:
    """Ends what nobody else will, then deletes what is past its retention. Counts per transition and per table."""
    last_start = time.monotonic() + seconds_left - _RESERVE_SECONDS
    return {
        "sweep": _repeat(store.sweep, SWEEP_LIMIT, last_start),
        "purge": _repeat(store.purge, PURGE_LIMIT, last_start),
    }


def _repeat(call: Callable[[int], dict[str, int]], limit: int, last_start: float) -> dict[str, int]:
    """One call always, further ones while the last found as much as its limit. "failed" rows stay where they are, so a
    call that found nothing else is the last."""
    total: Counter[str] = Counter()
    for _ in range(_MOST_CALLS):
        counts = call(limit)
        total.update(counts)
        if sum(counts.values()) < limit or counts.get("failed", 0) >= limit or time.monotonic() > last_start:
            break
    return dict(total)
