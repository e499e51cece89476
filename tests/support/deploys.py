"""Deploys by the real migration runner on the test's database, from a copy of `sql/` that the test may change."""

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stopline.migrate.runner import Report, migrate
from stopline.policy.model import Policy
from stopline.policy.parse import parse_policy
from stopline_cli.local.prepare import SQL, Connection
from tests.support.database import Database
from tests.support.policies import POLICY
from tests.support.run import SQL_VARIABLE

UNDER_TEST = Path(os.environ.get(SQL_VARIABLE, SQL))
"""The `sql/` that the run's template was made from."""

OUTSIDE = "-- stopline: outside-transaction\n"


class SqlCopy:
    """A copy of `sql/` in the test's own folder."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "sql"
        shutil.copytree(UNDER_TEST, self.path)

    def migration(self, name: str, text: str) -> None:
        """Adds or replaces a migration; `name` is without `.sql`."""
        (self.path / "migrations" / f"{name}.sql").write_text(text)

    def remove(self, name: str) -> None:
        """Takes a migration away again."""
        (self.path / "migrations" / f"{name}.sql").unlink()

    def engine(self, name: str, text: str) -> None:
        """Adds a file to the engine."""
        (self.path / "engine" / f"{name}.sql").write_text(text)


def policies(*kinds: str, more: str = "") -> dict[str, Policy]:
    """Parsed policies of test kinds with every default; `more` is appended to each file."""
    return {kind: parse_policy(kind, POLICY + more, f"{kind}/policy.toml") for kind in kinds}


def deploy(
    db: Database,
    sql_dir: Path = UNDER_TEST,
    kinds: Mapping[str, Policy] | None = None,
    sources: Mapping[str, str] | None = None,
    *,
    conn: Connection | None = None,
    **options: Any,
) -> Report:
    """One run of the migrator as the schema's owner."""
    run: dict[str, Any] = {"identity": db.identity, "local_clock": True} | options
    return migrate(conn or db.connect("stopline_owner"), sql_dir, kinds or {}, sources or {}, **run)
