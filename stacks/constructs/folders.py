"""Folders that are the same, byte for byte, whenever and wherever they are built; and a cache of them by content."""

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

_EPOCH = 315532800
"""1980-01-01, the first second that a zip file can name."""
_KEEP_SECONDS = 7 * 24 * 3600
_LEFT_OUT = ("__pycache__", "*.pyc", ".*", "*~")


def copy_sources(source: Path, target: Path) -> None:
    """Copy a folder of sources into `target`, without caches and hidden files."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(*_LEFT_OUT), dirs_exist_ok=True)


def link_tree(source: Path, target: Path) -> None:
    """Put a finished folder's files into `target` without a second copy on the disk, where the disk can."""
    shutil.copytree(source, target, copy_function=_link, dirs_exist_ok=True)


def files_of(folder: Path) -> list[Path]:
    """Every file below `folder` that counts, relative to it, in one order."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if not any(_left_out(part) for part in path.parts))


def digest(folder: Path) -> str:
    """A checksum of the names and contents below `folder`."""
    total = hashlib.sha256()
    for path in files_of(folder):
        content = hashlib.sha256((folder / path).read_bytes()).hexdigest()
        total.update(f"{path.as_posix()} {content}\n".encode())
    return total.hexdigest()


def built(cache: Path, name: str, key: str, build: Callable[[Path], None]) -> Path:
    """The folder that `build` fills, from the cache if one was built for `key` before.

    A build that fails leaves nothing behind. Runs side by side wait for each other, so a build asks for no other.
    Folders of `name` that nobody asked for in a week are removed.
    """
    finished = cache / name / key
    with _locked(cache):
        if not finished.is_dir():
            finished.parent.mkdir(parents=True, exist_ok=True)
            _forget_old(finished.parent)
            draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=cache))
            try:
                build(draft)
                _normalise(draft)
                draft.rename(finished)
            finally:
                shutil.rmtree(draft, ignore_errors=True)
        os.utime(finished)
    return finished


@contextmanager
def _locked(cache: Path) -> Iterator[None]:
    """One build at a time: tests run in several processes and would all build the same."""
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _forget_old(folder: Path) -> None:
    for entry in folder.iterdir():
        if entry.stat().st_mtime < time.time() - _KEEP_SECONDS:
            shutil.rmtree(entry, ignore_errors=True)


def _normalise(folder: Path) -> None:
    """The same modes and times everywhere: a zip file records them."""
    for path in sorted(folder.rglob("*")):
        if path.stat().st_nlink == 1 or path.is_dir():
            path.chmod(0o755 if path.is_dir() else 0o644)
            os.utime(path, (_EPOCH, _EPOCH))
    folder.chmod(0o755)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def _left_out(part: str) -> bool:
    return part == "__pycache__" or part.startswith(".") or part.endswith((".pyc", "~"))
