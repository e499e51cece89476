"""A PostgreSQL server of our own on a unix socket: made, started, shared and stopped, also by root and without HOME."""

import fcntl
import shutil
import time
from pathlib import Path
from typing import IO, Self

import psycopg

from stopline_cli.errors import CommandError
from stopline_cli.local.account import server_account
from stopline_cli.local.binaries import find_programs
from stopline_cli.local.datadir import PORT, DataDir

LOG_TAIL_LINES = 15


class EmbeddedPostgres:
    """One server over one data folder. Several processes may start the same one: the last to stop it ends it.

    `durable` keeps PostgreSQL's own durability; otherwise nothing waits for the disk. `programs` is the bin folder of
    another PostgreSQL than the wheel's. All failures are `CommandError`s with the tail of the server's log.
    """

    def __init__(self, data_dir: Path, *, durable: bool, programs: Path | None = None) -> None:
        self._account = server_account()
        self._data = DataDir(data_dir.absolute(), self._account, durable)
        self._named_programs = programs
        self._use: IO[str] | None = None

    @property
    def data_dir(self) -> Path:
        return self._data.path

    @property
    def log_file(self) -> Path:
        return self._data.beside("log")

    def start(self, timeout: float = 60) -> None:
        """Makes the data folder when it is new and starts the server, or joins the one that runs. Seconds."""
        self._data.check_place()
        programs = find_programs(self._account, self._named_programs)
        with self._lock():
            self._begin_use()
            try:
                self._data.make(programs, timeout)
                self._data.check_version(programs)
                if self._data.server_pid() is None:
                    self._launch(programs, timeout)
                self._await_answer(timeout)
            except BaseException:
                self._end_use()
                raise

    def stop(self, timeout: float = 30) -> None:
        """Ends our use of the server, and the server itself when nobody else uses it. Seconds."""
        if self._use is None:
            return
        with self._lock():
            try:
                fcntl.flock(self._use, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._end_use()
                return
            self._halt(timeout)
            self._end_use()

    def destroy(self, timeout: float = 30) -> None:
        """Stops the server whoever uses it, and removes its data. Seconds."""
        if not self.data_dir.parent.exists():
            return
        with self._lock():
            self._halt(timeout)
            self._end_use()
            for folder in (self.data_dir, self._data.beside("new")):
                shutil.rmtree(folder, ignore_errors=True)
            # Not the lock: another process may be waiting for this very file.
            for name in ("log", "users"):
                self._data.beside(name).unlink(missing_ok=True)

    def admin_conninfo(self, dbname: str = "postgres") -> dict[str, str | int]:
        """What `psycopg.connect` needs to log in as the superuser. Other logins differ in `user` only."""
        return {"host": str(self.data_dir), "port": PORT, "user": "postgres", "dbname": dbname}

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _lock(self) -> IO[str]:
        """A file that is locked until it is closed: one process at a time starts or stops this server."""
        lock = self._data.beside("lock").open("w")
        fcntl.flock(lock, fcntl.LOCK_EX)
        return lock

    def _begin_use(self) -> None:
        # A shared lock says "in use" and cannot be left behind: the system drops it when its process ends.
        if self._use is None:
            self._use = self._data.beside("users").open("w")
            fcntl.flock(self._use, fcntl.LOCK_SH)

    def _end_use(self) -> None:
        if self._use is not None:
            self._use.close()
            self._use = None

    def _launch(self, programs: Path, timeout: float) -> None:
        self._data.write_settings()
        self.log_file.touch()
        self._account.give(self.log_file)
        if not self._control(programs, "start", "-l", str(self.log_file), timeout=timeout):
            raise self._failed("did not start")

    def _await_answer(self, timeout: float) -> None:
        """Waits until the server takes connections: the one that we joined may still be starting."""
        until = time.monotonic() + timeout
        while not self._answers():
            if self._data.server_pid() is None or time.monotonic() > until:
                raise self._failed("does not answer")
            time.sleep(0.05)

    def _answers(self) -> bool:
        try:
            psycopg.connect(**self.admin_conninfo(), connect_timeout=5).close()  # type: ignore[arg-type]
        except psycopg.OperationalError:
            return False
        return True

    def _halt(self, timeout: float) -> None:
        """Ends the server if it runs: fast, and without a shutdown checkpoint when that takes too long."""
        if self._data.server_pid() is None:
            return
        programs = find_programs(self._account, self._named_programs)
        for mode in ("fast", "immediate"):
            # pg_ctl also fails when the server ended meanwhile by itself.
            if self._control(programs, "stop", "-m", mode, timeout=timeout) or self._data.server_pid() is None:
                return
        raise self._failed("did not stop")

    def _control(self, programs: Path, verb: str, *options: str, timeout: float) -> bool:
        """Runs pg_ctl and waits for what it is asked to do. False when that failed."""
        command = [str(programs / "pg_ctl"), verb, "-D", str(self.data_dir), *options, "-w", "-t", str(int(timeout))]
        return self._account.run(command, timeout + 10).returncode == 0

    def _failed(self, what: str) -> CommandError:
        try:
            tail = self.log_file.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:]
        except OSError:
            tail = []
        lines = "".join(f"\n  {line}" for line in tail)
        return CommandError(
            f"the PostgreSQL server of {self.data_dir}", f"{what}{': ' if lines else ''}{lines}", "see its log above"
        )
