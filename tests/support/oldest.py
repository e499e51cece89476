"""Runs the tests that depend on PostgreSQL's version on the system's PostgreSQL: `python -m tests.support.oldest`.

Those are plans, locks, rights, triggers, migrations and the functions that move jobs. What does not depend on the
version (constraints, figures, the command line, the demo, the worker's processes) is not run twice.
"""

import os
import subprocess
import sys

from stopline_cli.local.folders import CHECKOUT
from tests.support.run import PROGRAMS_VARIABLE
from tests.support.system_postgres import OLDEST, system_programs

SUITES = (
    "adopt",
    "caps",
    "claim",
    "doctor",
    "enqueue",
    "finish",
    "migrate",
    "migrate_locks",
    "migrate_sources",
    "old_code",
    "plans",
    "release",
    "roles",
    "source",
    "sweep",
)


def main(arguments: list[str]) -> int:
    """The exit status of pytest; 0 with a line that says so where there is nothing to run on."""
    programs = system_programs()
    if programs is None:
        print(f"skipped: no PostgreSQL of the system's; apt-get install postgresql-{OLDEST}")
        return 0
    print(f"on {programs}")
    files = [f"tests/sql/test_{suite}.py" for suite in SUITES]
    command = [sys.executable, "-m", "pytest", *files, *arguments]
    return subprocess.run(command, cwd=CHECKOUT, env={**os.environ, PROGRAMS_VARIABLE: str(programs)}).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
