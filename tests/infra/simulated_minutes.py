"""A deployment minute by minute: real monitor, real database, a moved clock, CloudWatch's rules over what comes out.

Each minute the pollers ask for work and the sweeper sweeps, unless they are stopped; then the real monitor runs, and
its EMF lines are what the alarms see of that minute. Nothing sleeps.
"""

import contextlib
import json
from collections.abc import Iterable, Mapping
from typing import Any

import psycopg
from psycopg import sql

from stopline_cli.local.functions import FunctionFailed, FunctionProcess
from tests.infra.cloudwatch_rules import Alarm, Metrics, alarming, composite
from tests.infra.emitted import SERVICE
from tests.support.database import Database
from tests.support.poller import sweep


class Deployment:
    """`pollers`, `sweeper` and `monitor` say what runs. `paged` has one entry for each minute."""

    def __init__(self, db: Database, alarms: Iterable[Alarm], paging_rule: str) -> None:
        db.freeze()
        self.db = db
        self.alarms = {alarm.name: alarm for alarm in alarms}
        self.metrics = Metrics()
        self.pollers = self.sweeper = self.monitor = True
        self.minute = 0
        self.paged: list[bool] = []
        environment = db.environment("stopline_monitor") | SERVICE
        self.function = FunctionProcess("monitor", "lambdas/monitor/handler.py", environment, 10)
        self._paging_rule = paging_rule
        self._read = 0

    def run(self, minutes: int) -> set[str]:
        """Lets minutes pass. Returns the alarms that are on after them."""
        for _ in range(minutes):
            self._pass_one()
        return self.on

    def until(self, name: str, *, is_on: bool, within: int) -> int:
        """Lets minutes pass until an alarm is on, or off. Returns how many; more than `within` fail the test."""
        for passed in range(1, within + 1):
            self._pass_one()
            if (name in self.on) == is_on:
                return passed
        raise AssertionError(f"{name} is not {'on' if is_on else 'off'} after {within} minutes; on: {self.on}")

    @property
    def on(self) -> set[str]:
        """The alarms that are on."""
        return alarming(self.alarms.values())

    @property
    def ever_on(self) -> set[str]:
        """The alarms that were on in any minute since the start or `forget`."""
        return {name for name, alarm in self.alarms.items() if "ALARM" in alarm.history}

    def forget(self) -> None:
        """Begins the record anew. The states stay."""
        self.paged.clear()
        for alarm in self.alarms.values():
            alarm.history.clear()

    def close_database(self) -> None:
        """Ends every session of the functions and refuses new ones, as an outage would."""
        self._connections(0)
        self.db.admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where datname = %s and pid <> pg_backend_pid()",
            [self.db.name],
        )

    def open_database(self) -> None:
        """Ends the outage."""
        self._connections(-1)

    def _connections(self, limit: int) -> None:
        statement = sql.SQL("alter database {} connection limit {}")
        self.db.admin.execute(statement.format(sql.Identifier(self.db.name), sql.Literal(limit)))

    def _pass_one(self) -> None:
        self.minute += 1
        self.db.move("1 minute")
        self._upkeep()
        if self.monitor:
            for line in self._read_health():
                self.metrics.put_emf(line, self.minute)
        for alarm in self.alarms.values():
            alarm.evaluate(self.metrics, self.minute)
        states = {name: alarm.state for name, alarm in self.alarms.items()}
        self.paged.append(composite(self._paging_rule, states) == "ALARM")

    def _upkeep(self) -> None:
        try:
            if self.pollers:
                kinds = self.db.rows("select name from stopline.kind where retired_at is null")
                with self.db.connect() as worker:
                    for kind in kinds:
                        worker.execute("select stopline.tick(%s)", [kind["name"]])
            if self.sweeper:
                sweep(self.db)
        except psycopg.OperationalError:
            return

    def _read_health(self) -> list[Mapping[str, Any]]:
        """One invocation of the monitor; what it wrote before it failed counts too."""
        with contextlib.suppress(FunctionFailed):
            self.function.invoke({})
        lines = self.function.log[self._read :]
        self._read = len(self.function.log)
        parsed = [json.loads(line) for line in lines if line.startswith("{")]
        return [line for line in parsed if "_aws" in line]
