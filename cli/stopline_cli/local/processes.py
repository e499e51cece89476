"""Ends a process with everything that it started, as the end of a Lambda sandbox does."""

import contextlib
import os
import signal
from pathlib import Path


def kill_tree(pid: int) -> None:
    """Kills `pid` and all its descendants, also those that left its process group. Does not reap `pid` itself."""
    # Stopped first: it must not start another child, or adopt one, while we look.
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
    for process in [*_descendants(pid), pid]:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def children_of(pid: int) -> list[int]:
    """The processes that `pid` is the parent of."""
    return _by_parent().get(pid, [])


def _by_parent() -> dict[int, list[int]]:
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            # The name, in parentheses, may itself hold spaces and parentheses.
            parent = int(stat.read_text(errors="replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    return children


def _descendants(pid: int) -> list[int]:
    """Children before their parents."""
    children = _by_parent()
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found[::-1]
