"""What the real functions write to stdout, read back as log lines and as metrics."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from stopline_cli.local.functions import FunctionProcess
from tests.infra.cloudwatch_rules import MetricKey, emf_metrics
from tests.support.database import Database
from tests.support.real_poller import RealPoller

Line = dict[str, Any]

SERVICE = {"STOPLINE_SERVICE": "Stopline"}
"""What the default deployment gives every function; test_monitoring_metrics.py holds it to the template."""


def monitor_lines(db: Database) -> list[Line]:
    """The lines of one invocation of the monitor."""
    environment = db.environment("stopline_monitor") | SERVICE
    with FunctionProcess("monitor", "lambdas/monitor/handler.py", environment, 10) as function:
        function.invoke({})
        return list(_parsed(function.log))


def poller_lines(db: Database, folder: Path, source: str, payloads: Iterable[object] = ({},)) -> list[Line]:
    """The lines of one invocation of a poller whose kind `work` has the handler `source` and these jobs."""
    with RealPoller(db, folder) as poller:
        poller.kind("work", source)
        for payload in payloads:
            db.enqueue(payload=payload)
        function = poller.start(STOPLINE_SERVICE=SERVICE["STOPLINE_SERVICE"])
        function.invoke({})
        return list(_parsed(function.log))


def metrics_of(lines: Iterable[Mapping[str, Any]]) -> dict[MetricKey, list[float]]:
    """Every metric that the lines publish, with its values."""
    found: dict[MetricKey, list[float]] = {}
    for line in lines:
        if "_aws" in line:
            found |= emf_metrics(line)
    return found


def _parsed(log: Iterable[str]) -> Iterator[Line]:
    for text in log:
        try:
            line = json.loads(text)
        except ValueError:
            continue
        if isinstance(line, dict):
            yield line
