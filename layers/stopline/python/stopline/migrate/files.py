"""The SQL files as the runner sees them: ordered, checksummed, checked for shape before anything runs."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from stopline.errors import StoplineError

_MIGRATION_NAME = re.compile(r"^(\d{4})_[a-z0-9_]+\.sql$")
_OUTSIDE = "-- stopline: outside-transaction"


class SqlFileError(StoplineError):
    """A file in `sql/` has a name or shape that the runner refuses."""


def checksum(text: str) -> str:
    """SHA-256 of a text, as hex."""
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Migration:
    """One forward step. `outside_transaction` steps hold exactly one statement that may be run again."""

    version: int
    name: str
    text: str
    outside_transaction: bool

    @property
    def checksum(self) -> str:
        return checksum(self.text)


@dataclass(frozen=True, slots=True)
class SqlFiles:
    """Everything under `sql/` that a migration applies."""

    migrations: tuple[Migration, ...]
    engine: tuple[tuple[str, str], ...]
    local_clock: str

    @property
    def newest(self) -> int:
        """The highest migration version that these files know; 0 without migrations."""
        return self.migrations[-1].version if self.migrations else 0

    def engine_texts(self, *, local_clock: bool) -> list[tuple[str, str]]:
        """The engine files in the order in which they are applied, with the movable clock last if it is wanted."""
        return [*self.engine, *([("local/clock.sql", self.local_clock)] if local_clock else [])]

    def engine_digest(self, *, local_clock: bool) -> str:
        """The checksum under which those files are recorded."""
        return checksum("\n".join(f"{name}\n{text}" for name, text in self.engine_texts(local_clock=local_clock)))


def read_sql_files(sql_dir: Path) -> SqlFiles:
    """Read and check `sql_dir`. Raises SqlFileError naming the file and the rule that it breaks."""
    migrations = [_migration(path) for path in sorted((sql_dir / "migrations").glob("*.sql"))]
    for expected, migration in enumerate(migrations, start=1):
        if migration.version != expected:
            raise SqlFileError(
                f"sql/migrations/{migration.name}.sql: expected version {expected:04d}; "
                "versions start at 0001 and have neither gaps nor twins"
            )
    if not migrations:
        raise SqlFileError(f"{sql_dir}/migrations: no migration found; is this the folder `sql` of Stopline?")
    engine = tuple((f"engine/{path.name}", path.read_text()) for path in sorted((sql_dir / "engine").glob("*.sql")))
    return SqlFiles(tuple(migrations), engine, (sql_dir / "local" / "clock.sql").read_text())


def _migration(path: Path) -> Migration:
    match = _MIGRATION_NAME.match(path.name)
    if match is None:
        raise SqlFileError(f"sql/migrations/{path.name}: a migration is named NNNN_lower_case_words.sql")
    text = path.read_text()
    outside = text.startswith(_OUTSIDE)
    if outside and _statements(text) != 1:
        raise SqlFileError(
            f"sql/migrations/{path.name}: a step outside a transaction holds exactly one statement, "
            f"found {_statements(text)}"
        )
    return Migration(int(match.group(1)), path.stem, text, outside)


def _statements(text: str) -> int:
    """How many statements a file without quoted semicolons holds; good enough for `create index concurrently`."""
    code = re.sub(r"--[^\n]*", "", text)
    return sum(1 for part in code.split(";") if part.strip())
