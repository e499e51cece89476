"""Rows written past the engine's functions, as a superuser could write them."""

from datetime import timedelta
from typing import Any
from uuid import uuid4

from psycopg import sql

from tests.support.database import Database


def insert_job(db: Database, state: str = "pending", **columns: Any) -> int:
    """One job in `state`, with what that state requires and `columns` on top. Timedeltas count from now.

    Returns its id.
    """
    now = db.now()
    required: dict[str, dict[str, Any]] = {
        "claimed": {
            "attempts": 1,
            "fence": 1,
            "claim_token": uuid4(),
            "claimed_by": "w1",
            "claimed_at": now,
            "lease_until": now + timedelta(minutes=1),
        },
        "succeeded": {"finished_at": now, "stop_reason": "completed"},
        "cancelled": {"finished_at": now, "stop_reason": "cancelled"},
        "abandoned": {"finished_at": now, "stop_reason": "permanent_failure", "last_error": "bad", "attempts": 1},
    }
    row: dict[str, Any] = {"kind": "work", "state": state, "max_attempts": 5, "due_at": now, "created_at": now}
    row |= required.get(state, {}) | columns
    values = [now + value if isinstance(value, timedelta) else value for value in row.values()]
    statement = sql.SQL("insert into stopline.job ({}) values ({}) returning id").format(
        sql.SQL(", ").join(map(sql.Identifier, row)), sql.SQL(", ").join(sql.Placeholder() * len(row))
    )
    made = db.admin.execute(statement, values).fetchone()
    assert made is not None
    db.admin.execute("insert into stopline.job_data (job_id, payload) values (%s, '{}')", [made[0]])
    return int(made[0])


def insert_many(db: Database, number: int, state: str = "succeeded", *, due_in: str = "-1 hour") -> None:
    """Many equal jobs of kind `work`, fast: succeeded ones, or pending ones that are due in `due_in`."""
    ended = state == "succeeded"
    db.admin.execute(
        "insert into stopline.job (kind, state, max_attempts, attempts, due_at, created_at, finished_at, stop_reason)"
        " select 'work', %s, 5, %s, stopline.clock() + %s::interval, stopline.clock() - interval '1 hour',"
        "        case when %s then stopline.clock() end, case when %s then 'completed' end"
        "   from generate_series(1, %s)",
        [state, int(ended), due_in, ended, ended, number],
    )
    db.admin.execute(
        "insert into stopline.job_data (job_id, payload) select id, '{}' from stopline.job on conflict do nothing"
    )
