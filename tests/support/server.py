"""The one PostgreSQL server of a test run, shared by pytest-xdist's workers."""

import fcntl
import os
from pathlib import Path

from stopline_cli.local.postgres import EmbeddedPostgres
from tests.support.run import RUN_VARIABLE, end_orphans, run_server
from tests.support.template import make_template


def join_run() -> EmbeddedPostgres:
    """Starts the run's server with its template, or joins it. Called by each worker."""
    folder = Path(os.environ[RUN_VARIABLE])
    folder.mkdir(mode=0o711, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        server = run_server(folder)
        if not server.data_dir.exists():
            end_orphans()
        server.start()
        try:
            make_template(server)
        except BaseException:
            server.stop()
            raise
    return server
