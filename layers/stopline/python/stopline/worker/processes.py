"""The kernel's side of isolation: parent-death signal, subreaper, thread count, and the end of what an attempt left.

Linux only. Elsewhere these guards do nothing, which `notice` says, and an attempt's group is still killed.
"""

import ctypes
import os
import signal
import sys
import threading
import time
from collections.abc import Collection
from contextlib import suppress

LINUX = sys.platform == "linux"
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_KILL_SECONDS = 5.0

_statuses: dict[int, int] = {}
"""Of children that were reaped by looking at them."""

_libc = ctypes.CDLL(None, use_errno=True) if LINUX else None


def notice() -> str | None:
    """What is missing on this platform, or None."""
    return None if LINUX else f"{sys.platform}: no parent-death signal, subreaper or memory limit; Linux has them"


def become_subreaper(on: bool) -> None:
    """Makes this process the parent of every orphan among its descendants, or no longer."""
    _prctl(_PR_SET_CHILD_SUBREAPER, int(on))


def die_with_parent(parent: int) -> None:
    """Has the kernel kill this process when its parent dies. Ends it at once if `parent` is already gone."""
    _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def threads() -> int:
    """Threads of this process, those that Python does not know of included."""
    known = threading.active_count()
    if not LINUX:
        return known
    return max(known, len(os.listdir("/proc/self/task")))


def data_bytes() -> int:
    """Private writable memory of this process: what RLIMIT_DATA counts. 0 where the kernel does not tell."""
    if LINUX:
        with open("/proc/self/status", encoding="ascii", errors="replace") as status:
            for line in status:
                if line.startswith("VmData:"):
                    return int(line.split()[1]) * 1024
    return 0


def children() -> set[int]:
    """Processes whose parent is this one, zombies included."""
    if not LINUX:
        return set()
    own = os.getpid()
    try:
        with open(f"/proc/self/task/{own}/children", encoding="ascii") as file:
            return {int(pid) for pid in file.read().split()}
    except OSError:  # kernels without CONFIG_PROC_CHILDREN
        return {int(name) for name in os.listdir("/proc") if name.isdigit() and _parent(name) == own}


def has_exited(pid: int) -> bool:
    """Whether a child has ended. It stays unreaped, so that its group's number cannot be given to others meanwhile."""
    try:
        if hasattr(os, "waitid"):
            return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        reaped, status = os.waitpid(pid, os.WNOHANG)  # macOS cannot look without reaping
        if reaped:
            _statuses[pid] = status
        return bool(reaped)
    except ChildProcessError:
        return True


def end(pid: int) -> int | None:
    """Kills a child with its whole group and reaps it. Returns its wait status, or None when it cannot be had."""
    _signal_group(pid)
    return _reap(pid)


def end_orphans(keep: Collection[int], spare_sessions: Collection[int]) -> int:
    """Kills every child but `keep` and those in a session of `spare_sessions`, and whatever they leave, until none is
    left. Returns how many there were.

    A killed process's children become ours before it can be reaped, so none escapes.
    """
    ended = 0
    deadline = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < deadline:
        found = [pid for pid in children() if pid not in keep and _session(pid) not in spare_sessions]
        if not found:
            break
        for pid in found:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in found:
            _reap(pid)
        ended += len(found)
    return ended


def _reap(pid: int) -> int | None:
    """Waits for a killed child, for some seconds at most: one that hangs in the kernel must not hold up the rest."""
    if pid in _statuses:
        return _statuses.pop(pid)
    deadline = time.monotonic() + _KILL_SECONDS
    pause = 0.0005
    while True:
        try:
            reaped, status = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if reaped:
            return status
        if time.monotonic() > deadline:
            return None
        time.sleep(pause)
        pause = min(pause * 2, 0.05)


def _signal_group(pid: int) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def _session(pid: int) -> int:
    try:
        return os.getsid(pid)
    except OSError:
        return -1


def _parent(name: str) -> int:
    try:
        with open(f"/proc/{name}/stat", encoding="utf-8", errors="replace") as stat:
            return int(stat.read().rpartition(")")[2].split()[1])
    except (OSError, ValueError, IndexError):
        return -1


def _prctl(option: int, value: int) -> None:
    if _libc is not None and _libc.prctl(option, value, 0, 0, 0) != 0:
        errno = ctypes.get_errno()
        raise OSError(errno, f"prctl({option}, {value}): {os.strerror(errno)}")
