"""The system account that PostgreSQL runs under: PostgreSQL refuses root, so root lends it an unprivileged one."""

import os
import pwd
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stopline_cli.errors import CommandError


@dataclass(frozen=True, slots=True)
class Account:
    """A uid and gid for the server. `lent` is true when they are not our own, that is when we are root."""

    uid: int
    gid: int
    lent: bool

    def run(self, command: Sequence[str | Path], timeout: float) -> subprocess.CompletedProcess[str]:
        """Runs one PostgreSQL program as this account and returns its exit status and output, both streams in one."""
        return subprocess.run(
            [str(word) for word in command],
            # The current folder may be closed to the account, and nothing of our environment concerns the server.
            cwd="/",
            env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=timeout,
            user=self.uid if self.lent else None,
            group=self.gid if self.lent else None,
            extra_groups=[] if self.lent else None,
            check=False,
        )

    def give(self, path: Path) -> None:
        """Hands a file or folder that we made to this account."""
        if self.lent:
            os.chown(path, self.uid, self.gid)

    def enters(self, folder: Path) -> bool:
        """Whether this account may pass through `folder` itself."""
        return self._may(folder, stat.S_IXUSR) if self.lent else os.access(folder, os.X_OK)

    def closed_above(self, path: Path) -> Path | None:
        """The first folder above `path`, from the root down, that this account may not enter."""
        return next((folder for folder in reversed(path.resolve().parents) if not self.enters(folder)), None)

    def _may(self, path: Path, owner_bit: int) -> bool:
        """Whether the permission bits of `path` let this account do what `owner_bit` lets the owner do."""
        info = path.stat()
        if info.st_uid == self.uid:
            return bool(info.st_mode & owner_bit)
        if info.st_gid == self.gid:
            return bool(info.st_mode & (owner_bit >> 3))
        return bool(info.st_mode & (owner_bit >> 6))


def server_account() -> Account:
    """Our own account, or `nobody` when we are root."""
    if os.geteuid() != 0:
        return Account(os.geteuid(), os.getegid(), lent=False)
    try:
        entry = pwd.getpwnam("nobody")
    except KeyError:
        raise CommandError(
            "PostgreSQL",
            "does not run as root, and this system has no user `nobody` to run it as",
            "run the command as an ordinary user",
        ) from None
    return Account(entry.pw_uid, entry.pw_gid, lent=True)
