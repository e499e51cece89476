"""The one error of a migration, and a database error in a line."""

import psycopg

from stopline.errors import StoplineError


class MigrationError(StoplineError):
    """A migration cannot go on. The message names the file or database, the rule and the fix, SQLSTATE first."""


def describe(error: psycopg.Error) -> str:
    """What the database said, with its detail, the innermost context and the notes that were added on the way."""
    diag = error.diag
    parts = [diag.message_primary or str(error)]
    if diag.message_detail:
        parts.append(diag.message_detail)
    if diag.context:
        parts.append(diag.context.splitlines()[0])
    parts.extend(getattr(error, "__notes__", []))
    return "; ".join(parts)
