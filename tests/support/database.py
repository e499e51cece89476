"""One test's own database, and the few moves that every test of the SQL needs."""

import contextlib
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, LiteralString, cast
from uuid import uuid4

from stopline.store.connection import Session
from stopline.store.producer import Enqueued, enqueue
from stopline.store.target import Target
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import Connection, connect
from tests.support.policies import policy_row, sync
from tests.support.template import IDENTITY, TEMPLATE


class Database:
    """A fresh copy of the template. Connections and sessions that it hands out end with the test."""

    identity = IDENTITY

    def __init__(self, server: EmbeddedPostgres, cleanup: contextlib.ExitStack, name: str) -> None:
        self._server = server
        self._cleanup = cleanup
        self.name = name
        self._kinds: dict[str, dict[str, object]] = {}
        self.admin = self.connect("postgres")

    def connect(self, role: str = "stopline_worker", *, autocommit: bool = True) -> Connection:
        """A new database session as `role`."""
        conn = connect(self._server, self.name, role)
        conn.autocommit = autocommit
        self._cleanup.callback(conn.close)
        return conn

    def target(self, role: str = "stopline_worker") -> Target:
        """Where the library's own connections go."""
        place = self._server.admin_conninfo(self.name)
        return Target(
            host=str(place["host"]),
            port=int(place["port"]),
            dbname=self.name,
            user=role,
            application_name="stopline-test",
        )

    def session(self, role: str = "stopline_worker") -> Session:
        """The library's own session as `role`."""
        session = Session(self.target(role))
        self._cleanup.callback(session.close)
        return session

    def environment(self, role: str) -> dict[str, str]:
        """The variables by which a Lambda function finds this database as `role`."""
        target = self.target(role)
        return {
            "STOPLINE_DB_HOST": target.host,
            "STOPLINE_DB_PORT": str(target.port),
            "STOPLINE_DB_NAME": target.dbname,
            "STOPLINE_DB_USER": role,
            "STOPLINE_DB_AUTH": "none",
            "STOPLINE_INSTALLATION": self.identity,
            "AWS_REGION": "eu-central-1",
        }

    def policy(self, kind: str = "work", **changes: object) -> dict[str, object]:
        """Deploys a test kind, or deploys it again with other values. `changes` are columns of `stopline.kind`."""
        row = policy_row(kind, changes)
        self._kinds[kind] = row
        with connect(self._server, self.name, "stopline_owner") as owner:
            sync(owner, self._kinds.values())
        return row

    def retire(self, kind: str) -> None:
        """Deploys without the kind."""
        del self._kinds[kind]
        with connect(self._server, self.name, "stopline_owner") as owner:
            sync(owner, self._kinds.values())

    def enqueue(self, kind: str = "work", payload: object = None, **options: Any) -> Enqueued:
        """Enqueues as the producer, committed. `options` are those of `stopline.store.producer.enqueue`."""
        with connect(self._server, self.name, "stopline_producer") as conn:
            return enqueue(conn, kind, {} if payload is None else payload, **options)

    def now(self) -> datetime:
        """The database's time."""
        (row,) = self.rows("select stopline.clock() as now")
        return cast(datetime, row["now"])

    def move(self, span: str | float | None = None, *, seconds: float = 0) -> None:
        """Moves the database's clock: `move("1h 30m")`, `move(90)` or `move(seconds=90)`. Negative moves it back."""
        text = span if isinstance(span, str) else f"{seconds if span is None else span} seconds"
        self.admin.execute("update stopline_local.clock set shift = shift + %s::interval", [text])

    def freeze(self) -> None:
        """Stops the clock at its present time; `move` still moves it."""
        self.admin.execute("update stopline_local.clock set frozen_at = clock_timestamp()")

    def thaw(self) -> None:
        """Lets a frozen clock run on."""
        self.admin.execute("update stopline_local.clock set frozen_at = null")

    def rows(self, query: LiteralString, *values: object) -> list[dict[str, Any]]:
        """The rows of one query, read as the superuser."""
        cursor = self.admin.execute(query, values)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]

    def job(self, job_id: int) -> Mapping[str, Any]:
        """The job's row, bulky data included."""
        query = "select j.*, d.payload, d.result, d.checkpoint from stopline.job j left join stopline.job_data d"
        (row,) = self.rows(f"{query} on d.job_id = j.id where j.id = %s", job_id)
        return row

    def attempts(self, job_id: int) -> list[dict[str, Any]]:
        """The job's ended attempts, oldest first."""
        return self.rows("select * from stopline.attempt where job_id = %s order by fence", job_id)


@contextlib.contextmanager
def fresh_database(server: EmbeddedPostgres, template: str = TEMPLATE) -> Iterator[Database]:
    """A database for one test, dropped at its end together with every session that is left in it."""
    name = f"test_{uuid4().hex[:16]}"
    with connect(server, "postgres") as admin:
        admin.execute(f'create database "{name}" template "{template}"')
        try:
            with contextlib.ExitStack() as cleanup:
                yield Database(server, cleanup, name)
        finally:
            admin.execute(f'drop database if exists "{name}" with (force)')
