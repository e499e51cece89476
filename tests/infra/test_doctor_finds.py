"""`stopline doctor --aws` looks for what the stacks really make."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from stopline_cli.doctor.functions import Function
from stopline_cli.doctor.stacks import PARTS
from tests.support.synth import Synthesis

LOOKED_FOR = {
    "AWS::CloudWatch::Alarm",
    "AWS::CloudWatch::CompositeAlarm",
    "AWS::Lambda::Function",
    "AWS::SQS::Queue",
    "AWS::Scheduler::Schedule",
    "AWS::Scheduler::ScheduleGroup",
}

Synthesized = Callable[[str], Synthesis]


def resources(synthesized: Synthesized, part: str) -> dict[str, Any]:
    return dict(synthesized("default").templates[f"Stopline{part}"]["Resources"])


def test_the_stacks_have_the_names_that_the_prefix_gives_and_hold_every_type_it_looks_at(
    synthesized: Synthesized,
) -> None:
    assert set(synthesized("default").templates) == {f"Stopline{part}" for part in PARTS}
    found = {resource["Type"] for part in PARTS for resource in resources(synthesized, part).values()}
    assert found >= LOOKED_FOR


def test_one_function_is_the_migrator_and_those_that_are_ours_are_told_by_their_environment(
    synthesized: Synthesized,
) -> None:
    functions = [
        Function(logical, {"Environment": resource["Properties"].get("Environment", {})})
        for logical, resource in resources(synthesized, "Jobs").items()
        if resource["Type"] == "AWS::Lambda::Function"
    ]
    assert Counter(function.is_migrator for function in functions)[True] == 1
    ours = [function.name for function in functions if "STOPLINE_DB_HOST" in function.environment]
    assert len(ours) >= 5
    assert not any("Provider" in name for name in ours)


def test_every_schedule_is_in_the_one_group_that_it_lists(synthesized: Synthesized) -> None:
    found = resources(synthesized, "Jobs")
    groups = [name for name, resource in found.items() if resource["Type"] == "AWS::Scheduler::ScheduleGroup"]
    schedules = [
        resource["Properties"] for resource in found.values() if resource["Type"] == "AWS::Scheduler::Schedule"
    ]
    assert len(groups) == 1
    assert {schedule["GroupName"]["Ref"] for schedule in schedules} == set(groups)


def test_the_page_has_an_action_and_no_alarm_is_made_silent(synthesized: Synthesized) -> None:
    alarms = [
        resource["Properties"]
        for resource in resources(synthesized, "Monitoring").values()
        if resource["Type"] in ("AWS::CloudWatch::Alarm", "AWS::CloudWatch::CompositeAlarm")
    ]
    (page,) = (alarm for alarm in alarms if "AlarmRule" in alarm)
    assert page["AlarmActions"]
    assert all(alarm.get("ActionsEnabled", True) for alarm in alarms)
