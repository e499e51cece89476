"""What other kinds and settings make of the jobs stack: shared pollers, periodic kinds, reserved concurrency."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from stacks.constructs.schedules import rate
from stacks.jobs import identifier
from tests.infra.jobs_stack import PLAIN, jobs_template, kinds
from tests.infra.resolved import resources
from tests.support.synth import Template

PERIODIC = f"""{PLAIN}
poller = "shared"
[enqueue]
schedule = "cron(0 6 * * ? *)"
timezone = "Europe/Berlin"
[access]
environment = {{ GREETING = "hello" }}
"""
HOURLY = f"""{PLAIN}
[enqueue]
schedule = "rate(1 hour)"
"""


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Template:
    """Two kinds that share a poller, one of them periodic, and a periodic one with a poller of its own."""
    folder = tmp_path_factory.mktemp("kinds")
    policies = kinds(
        folder / "jobs", {"morning_report": PERIODIC, "notices": PLAIN + 'poller = "shared"\n', "tidy": HOURLY}
    )
    return jobs_template(policies, folder / "out", kinds_dir=folder / "jobs", reserve_concurrency=True)


def test_kinds_that_name_one_poller_share_one_function(template: Template) -> None:
    """With the kinds of both, and the environment of both."""
    functions = resources(template, "AWS::Lambda::Function")
    assert {name for name in functions if name.startswith("Poller")} == {"PollerShared", "PollerTidy"}
    variables = functions["PollerShared"]["Environment"]["Variables"]
    assert variables["STOPLINE_KINDS"] == "morning_report,notices"
    assert variables["GREETING"] == "hello"


def test_a_periodic_kind_has_a_schedule_of_its_own_beside_its_pollers(template: Template) -> None:
    """Its occurrence is keyed by the time that it was scheduled for, which the scheduler puts in."""
    schedules = resources(template, "AWS::Scheduler::Schedule")
    report = schedules["SchedulesOccurrenceMorningReport"]
    assert report["ScheduleExpression"] == "cron(0 6 * * ? *)"
    assert report["ScheduleExpressionTimezone"] == "Europe/Berlin"
    assert report["FlexibleTimeWindow"] == {"Mode": "OFF"}
    assert report["Target"]["Arn"].endswith(":PollerShared")
    assert json.loads(report["Target"]["Input"]) == {
        "enqueue": "morning_report",
        "scheduled_for": "<aws.scheduler.scheduled-time>",
    }
    hourly = schedules["SchedulesOccurrenceTidy"]
    assert hourly["ScheduleExpression"] == "rate(1 hour)"
    assert "ScheduleExpressionTimezone" not in hourly
    assert json.loads(schedules["SchedulesEveryTidy"]["Target"]["Input"]) == {}


def test_a_deployment_that_asks_for_it_reserves_what_can_run_at_once(template: Template) -> None:
    """LD-06: an option, and just as much as overlapping invocations need: periodic ones come on top."""
    reserved = {
        name: function.get("ReservedConcurrentExecutions")
        for name, function in resources(template, "AWS::Lambda::Function").items()
        if function["Handler"] == "handler.handler"
    }
    assert reserved == {
        "PollerShared": 2,
        "PollerTidy": 2,
        "Sweeper": 2,
        "Monitor": 1,
        "SetupMigrator": None,
        "SetupBootstrap": None,
    }


@pytest.mark.parametrize(
    ("minutes", "expression"), [(1, "rate(1 minute)"), (2, "rate(2 minutes)"), (1440, "rate(1440 minutes)")]
)
def test_a_rate_of_one_is_singular(minutes: int, expression: str) -> None:
    """EventBridge refuses `rate(1 minutes)` at deploy time, and no linter says so before."""
    assert rate(timedelta(minutes=minutes)) == expression


def test_an_interval_that_no_schedule_has_is_refused() -> None:
    """The scheduler counts in whole minutes."""
    with pytest.raises(ValueError, match="whole minutes"):
        rate(timedelta(seconds=90))


def test_two_names_never_give_one_construct() -> None:
    """Underscores and digits are where camel case loses something."""
    names = ["a_b", "ab", "a_1", "a1", "a__b", "a_", "a", "close_conversation"]
    assert len({identifier(name) for name in names}) == len(names)
    assert identifier("close_conversation") == "CloseConversation"


def test_a_second_synth_is_the_same_template(tmp_path: Path) -> None:
    """Nothing in it depends on order, time or place."""
    policies = kinds(tmp_path / "jobs", {"one": PLAIN, "two": HOURLY})
    first = jobs_template(policies, tmp_path / "first", kinds_dir=tmp_path / "jobs")
    second = jobs_template(dict(reversed(policies.items())), tmp_path / "second", kinds_dir=tmp_path / "jobs")
    assert json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
