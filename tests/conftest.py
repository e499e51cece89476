"""One name per test run, shared by pytest-xdist's workers, and the end of what the run started."""

import os
from pathlib import Path

import pytest

from tests.support.run import RUN_VARIABLE, end_run, new_run_folder


def pytest_configure(config: pytest.Config) -> None:
    """The controller names the run's folder; its workers inherit the name. Nothing is made before a test needs it."""
    if not hasattr(config, "workerinput"):
        os.environ[RUN_VARIABLE] = str(new_run_folder())


def pytest_unconfigure(config: pytest.Config) -> None:
    """The controller ends the server after all workers, also when tests failed or the run was interrupted."""
    if not hasattr(config, "workerinput"):
        end_run(Path(os.environ[RUN_VARIABLE]))
