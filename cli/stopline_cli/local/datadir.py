"""A server's data folder: made by initdb, checked against the server's version, and set up before each start."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from stopline_cli.errors import CommandError
from stopline_cli.local.account import Account

SOCKET_PATH_BYTES = 107
"""The longest path that Linux takes for a unix socket."""

PORT = 5432
"""Only part of the socket's file name: the server listens on no network address."""

SETTINGS = {
    "listen_addresses": "",
    "port": str(PORT),
    # The socket lies in the data folder, which only the server's account and root can enter. That is why local logins
    # need no password.
    "unix_socket_permissions": "0700",
    "max_connections": "100",
    "shared_buffers": "256MB",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_line_prefix": "%m [%p] %q%u@%d ",
}
NOT_DURABLE = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
"""For data that nobody misses after a power cut. A killed server still loses nothing that the system has."""


@dataclass(frozen=True, slots=True)
class DataDir:
    """One data folder. Files about it that others may see (`log`, `lock`, `users`) lie beside it."""

    path: Path
    account: Account
    durable: bool

    def beside(self, name: str) -> Path:
        return self.path.with_name(f"{self.path.name}.{name}")

    def check_place(self) -> None:
        """Refuses a place whose socket path would be too long or that the server's account cannot reach."""
        socket = self.path / f".s.PGSQL.{PORT}"
        if len(os.fsencode(socket)) > SOCKET_PATH_BYTES:
            rule = f"the path of a socket has at most {SOCKET_PATH_BYTES} bytes"
            raise CommandError(str(socket), rule, "choose a shorter data folder")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        closed = self.account.closed_above(self.path)
        if closed is not None:
            rule = "is closed to the account that PostgreSQL runs under"
            raise CommandError(str(closed), rule, f"choose another data folder, or `chmod o+x {closed}`")

    def make(self, programs: Path, timeout: float) -> None:
        """Runs initdb beside the final place and moves the result there: a killed initdb leaves nothing half made."""
        if (self.path / "PG_VERSION").exists():
            return
        building = self.beside("new")
        shutil.rmtree(building, ignore_errors=True)
        building.mkdir(mode=0o700)
        self.account.give(building)
        options = ["-U", "postgres", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-instructions"]
        if not self.durable:
            options.append("--no-sync")
        done = self.account.run([programs / "initdb", "-D", building, *options], timeout)
        if done.returncode != 0:
            raise CommandError(f"initdb for {self.path}", done.stdout.strip(), "remove what the message names")
        with (building / "postgresql.conf").open("a") as file:
            file.write("include 'stopline.conf'\n")
        if self.path.exists():
            self.path.rmdir()
        building.rename(self.path)

    def check_version(self, programs: Path) -> None:
        """Refuses data of another major version than the server's."""
        data = (self.path / "PG_VERSION").read_text().strip()
        server = self.account.run([programs / "postgres", "--version"], 30).stdout.split()[2]
        if server.split(".")[0] != data:
            rule = f"was made by PostgreSQL {data}, and the server is {server}"
            raise CommandError(str(self.path), rule, "remove the folder; its data is lost")

    def write_settings(self) -> None:
        """Writes the settings of the next start."""
        settings = SETTINGS | ({} if self.durable else NOT_DURABLE)
        lines = [f"{name} = '{value}'\n" for name, value in settings.items()]
        # Inside the setting's quotes a folder stands in double quotes: commas separate several of them.
        folder = str(self.path).replace("'", "''").replace('"', '""')
        lines.append(f"unix_socket_directories = '\"{folder}\"'\n")
        file = self.path / "stopline.conf"
        file.write_text("".join(lines))
        self.account.give(file)

    def server_pid(self) -> int | None:
        """The process that serves this folder, or None. A stale pid file is removed: its pid may be somebody else's."""
        file = self.path / "postmaster.pid"
        try:
            pid = int(file.read_text().split()[0])
        except (FileNotFoundError, IndexError, ValueError):
            return None
        if _runs(pid, self.path):
            return pid
        file.unlink(missing_ok=True)
        return None


def _runs(pid: int, folder: Path) -> bool:
    """Whether process `pid` is a server of `folder`."""
    if not Path("/proc/self").exists():
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:
            return True
        return True
    try:
        return os.fsencode(folder) in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
