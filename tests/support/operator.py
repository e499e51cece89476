"""A person at the operator's functions, so that a test reads as a timeline."""

from dataclasses import dataclass
from typing import Any, LiteralString

from tests.support.database import Database


@dataclass
class Operator:
    """Calls the engine as `stopline_operator`, in the name of ada."""

    db: Database
    actor: str = "ada"

    def _call(self, function: LiteralString, *arguments: object) -> tuple[Any, ...]:
        marks: LiteralString = ", ".join(["%s"] * len(arguments))
        with self.db.connect("stopline_operator") as conn:
            row = conn.execute(f"select * from stopline.{function}({marks})", arguments).fetchone()
        assert row is not None
        return row

    def cancel(self, job: int, checked: str | None = None) -> tuple[Any, ...]:
        return self._call("cancel", job, self.actor, "not needed any more", checked)

    def replay(self, job: int, deadline: object = None) -> tuple[Any, ...]:
        return self._call("replay", job, self.actor, "the fault is mended", "looked at the receiver", deadline)

    def reconcile(self, job: int, answer: str) -> tuple[Any, ...]:
        return self._call("reconcile", job, self.actor, "asked the receiver", "by telephone", answer)

    def acknowledge(self, job: int) -> tuple[Any, ...]:
        return self._call("acknowledge", job, self.actor, "seen")

    def release_key(self, job: int) -> tuple[Any, ...]:
        return self._call("release_key", job, self.actor, "new work may have it")

    def pause(self, kind: str = "work", until: object = None) -> tuple[Any, ...]:
        return self._call("pause_kind", kind, self.actor, "upstream is in maintenance", until)

    def resume(self, kind: str = "work") -> tuple[Any, ...]:
        return self._call("resume_kind", kind, self.actor, "upstream is back")


def events(db: Database, job: int | None = None) -> list[str]:
    """The actions in the audit, of one job or of kinds alone, oldest first; policies left out."""
    rows = db.rows(
        "select action from stopline.event where job_id is not distinct from %s and action not like 'policy%%' "
        "order by id",
        job,
    )
    return [row["action"] for row in rows]
