"""Stopline: background jobs with a stop line. What a handler and a producer import.

Names are loaded on first use, so that reading a policy at synth needs no database driver.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from stopline.errors import InvalidInput, Permanent, Transient, Uncertain

if TYPE_CHECKING:
    from stopline.http import HttpError, raise_for_status
    from stopline.store.producer import Enqueued, Item, enqueue, enqueue_many
    from stopline.worker.job import Job

__all__ = [
    "Enqueued",
    "HttpError",
    "InvalidInput",
    "Item",
    "Job",
    "Permanent",
    "Transient",
    "Uncertain",
    "enqueue",
    "enqueue_many",
    "raise_for_status",
]

_HOMES = {
    "HttpError": "stopline.http",
    "raise_for_status": "stopline.http",
    "Job": "stopline.worker.job",
    "Enqueued": "stopline.store.producer",
    "Item": "stopline.store.producer",
    "enqueue": "stopline.store.producer",
    "enqueue_many": "stopline.store.producer",
}


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'stopline' has no attribute {name!r}")
    return getattr(import_module(home), name)
