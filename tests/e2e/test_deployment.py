"""A whole deployment from its assets, in the order in which CloudFormation runs it."""

from collections.abc import Iterator

import pytest

from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import load_samples, make_sample_application
from stopline_cli.standins.process import StandInProcess
from tests.e2e.conftest import Start
from tests.e2e.harness.deployment import Deployment
from tests.e2e.harness.instance import InvocationFailed
from tests.support.database import Database, fresh_database

EMPTY = "template0"


@pytest.fixture
def empty(server: EmbeddedPostgres) -> Iterator[Database]:
    """A database in which nobody has done anything."""
    with fresh_database(server, EMPTY) as database:
        yield database


def test_an_empty_database_becomes_a_working_deployment(
    empty: Database, server: EmbeddedPostgres, app: Deployment, start: Start
) -> None:
    """LD-01, MI-01: bootstrap, migrator, the shipped kinds' pollers, sweeper and monitor, each from its asset and with
    its schedule's event. The superuser stands in for the master that Aurora makes."""
    with StandInProcess("bedrock") as bedrock, StandInProcess("connector") as connector:
        addresses = {"AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url, "ACCOUNTING_URL": connector.url}
        master = {"STOPLINE_DB_USER": "postgres"}
        functions = {
            name: app.function(name, empty, **(addresses if name.startswith("poller") else {}))
            for name in app.functions.keys() - {"bootstrap"}
        }
        bootstrap = start(app.function("bootstrap", empty, **master))
        assert bootstrap.invoke() == bootstrap.invoke() == {"master": "postgres", "database": empty.name}
        make_sample_application(server, empty.name)
        load_samples(server, empty.name)

        migrator = start(functions.pop("migrator"))
        first, second = migrator.invoke(), migrator.invoke()
        assert first["schema_version"] == second["schema_version"] >= 1
        assert first["warnings"] == []

        results = {}
        for name, function in sorted(functions.items()):
            (event,) = function.events
            results[name] = start(function).invoke(event)
        answered = len(bedrock.calls()["calls"])

    assert results.keys() == {"poller of accounting_export", "poller of close_conversation", "sweeper", "monitor"}
    outcomes = results["poller of close_conversation"]["kinds"]["close_conversation"]["outcomes"]
    (paid,) = empty.rows("select count(*) from stopline.job where state = 'succeeded' and cost_usd > 0")
    assert outcomes == {"succeeded": answered}
    assert paid["count"] == answered >= 1
    assert results["poller of accounting_export"]["kinds"]["accounting_export"]["status"] == "empty"
    assert results["sweeper"].keys() == {"sweep", "purge"}
    assert results["monitor"]["kinds"] == 2


def test_the_monitors_metrics_leave_the_runtime_as_cloudwatch_reads_them(
    db: Database, faults: Deployment, start: Start
) -> None:
    """AL-01: one line that is one JSON object, in an all-zero run too."""
    monitor = start(faults.function("monitor", db))
    service = monitor.function.environment["STOPLINE_SERVICE"]
    (event,) = monitor.function.events
    totals = monitor.invoke(event)["totals"]
    (blob,) = monitor.log.metrics
    (directive,) = blob["_aws"]["CloudWatchMetrics"]
    assert (directive["Namespace"], directive["Dimensions"], blob["service"]) == ("Stopline", [["service"]], service)
    known = {name for name, value in totals.items() if value is not None}
    assert {metric["Name"] for metric in directive["Metrics"]} == known | {"Heartbeat"}
    assert {name: blob[name] for name in ("Due", "Stuck", "Heartbeat")} == {
        "Due": [0.0],
        "Stuck": [0.0],
        "Heartbeat": [1.0],
    }


def test_a_migrator_that_cannot_work_fails_its_function_and_says_what_to_do(
    empty: Database, app: Deployment, start: Start
) -> None:
    """MI-06: the trigger hands the text on to CloudFormation, which shows 4,096 bytes of it."""
    migrator = start(app.function("migrator", empty))
    with pytest.raises(InvocationFailed) as failed:
        migrator.invoke()
    assert failed.value.error_type == "MigrationFailed"
    assert "run sql/bootstrap.sql once" in failed.value.message
    assert len(failed.value.message.encode()) <= 1500
    (line,) = migrator.log.events("migrate_failed")
    assert line["level"] == "ERROR"
