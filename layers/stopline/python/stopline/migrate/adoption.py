"""Says which deployment a database belongs to from now on: for a copy that was restored from a backup."""

from dataclasses import asdict, dataclass
from typing import Any

import psycopg

from stopline.store.faults import engine_error


@dataclass(frozen=True, slots=True)
class Adoption:
    """`changed` is false when the database already belonged to `identity`. Jobs from `first_job` on have effect keys
    that begin with `installation`; earlier ones keep theirs."""

    changed: bool
    identity: str
    installation: str
    first_job: int

    def to_row(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)

    @property
    def line(self) -> str:
        """What happened, in a sentence."""
        if not self.changed:
            return f"already done: this database belongs to {self.identity!r}"
        return (
            f"this database now belongs to {self.identity!r}: its pollers may claim. Jobs before {self.first_job} keep "
            f"their effect keys, later ones begin with {self.installation}"
        )


def adopt(conn: psycopg.Connection, identity: str, actor: str, reason: str) -> Adoption:
    """Give the database behind `conn` (autocommit, as stopline_owner) to the pollers that claim with `identity`.

    Raises InvalidInput when something is missing, and Refused on a database that was never migrated.
    """
    try:
        row = conn.execute(
            "select answer, identity, installation, first_job from stopline.adopt(%s, %s, %s)",
            (identity, actor, reason),
        ).fetchone()
    except psycopg.Error as error:
        raise engine_error(error) or error from error
    assert row is not None
    return Adoption(row[0] == "adopted", row[1], row[2], row[3])
