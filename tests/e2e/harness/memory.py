"""A memory cgroup of a test's own, below the one that the tests run in, so that the outer limits go on holding."""

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

_ROOT = Path("/sys/fs/cgroup")
_EMPTY_SECONDS = 5.0
_LIMIT_FILES = {1: ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"), 2: ("memory.max", "memory.swap.max")}


class NoMemoryGroup(Exception):
    """No memory cgroup can be made here. Says why."""


@contextlib.contextmanager
def memory_group(limit_mb: int) -> Iterator[Path]:
    """A new group whose processes together get `limit_mb`, and no swap. Removed at the end. Raises NoMemoryGroup."""
    version, parent = _own_group()
    group = parent / f"stopline-test-{uuid4().hex[:12]}"
    limit, swap = _LIMIT_FILES[version]
    try:
        group.mkdir()
        (group / limit).write_text(str(limit_mb * 1024 * 1024))
        if (group / swap).exists():
            (group / swap).write_text("0" if version == 2 else str(limit_mb * 1024 * 1024))
    except OSError as error:
        with contextlib.suppress(OSError):
            group.rmdir()
        raise NoMemoryGroup(f"no memory cgroup can be made in {parent}: {error.strerror}") from None
    try:
        yield group
    finally:
        _remove(group)


def kills(group: Path) -> int:
    """How many processes of the group the kernel killed because its memory ran out."""
    for name in ("memory.events", "memory.oom_control"):
        file = group / name
        if file.exists():
            counts = dict(line.split() for line in file.read_text().splitlines())
            return int(counts["oom_kill"])
    raise NoMemoryGroup(f"{group} does not tell how many processes were killed")


def _own_group() -> tuple[int, Path]:
    """The version of the hierarchy that limits memory, and the folder of the group that this process is in."""
    for line in _groups():
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            return 1, _ROOT / "memory" / path.lstrip("/")
        if controllers == "" and (_ROOT / "cgroup.controllers").exists():
            return 2, _ROOT / path.lstrip("/")
    raise NoMemoryGroup("this system has no cgroups that limit memory")


def _groups() -> list[str]:
    try:
        return Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []


def _remove(group: Path) -> None:
    """A group can be removed a moment after its last process has ended."""
    until = time.monotonic() + _EMPTY_SECONDS
    while True:
        try:
            group.rmdir()
            return
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.02)
