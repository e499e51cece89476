"""The synthesized templates: each configuration is synthesized once per run, also with several workers."""

from collections.abc import Callable

import pytest

from stopline.policy import Policy, load_policies
from tests.sql.conftest import db, server
from tests.support.synth import JOBS_DIR, Synthesis, synthesis

__all__ = ["db", "policies", "server", "synthesized"]


@pytest.fixture(scope="session")
def policies() -> dict[str, Policy]:
    """The shipped kinds' policies."""
    return load_policies(JOBS_DIR)


@pytest.fixture(scope="session")
def synthesized() -> Callable[[str], Synthesis]:
    """`synthesized("default")` is the synthesis of examples/default.json: its templates by stack name, its folder."""
    return synthesis
