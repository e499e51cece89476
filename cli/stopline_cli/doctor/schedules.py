"""Schedules: that they exist, are enabled, call a function of the deployment, and drop nothing silently."""

from collections.abc import Iterator
from typing import Any

from stopline.migrate.findings import Finding, Level
from stopline_cli.doctor.account import Account
from stopline_cli.doctor.checks import finding
from stopline_cli.doctor.functions import Function
from stopline_cli.doctor.stacks import Stacks


def check_schedules(account: Account, stacks: Stacks, functions: list[Function]) -> Iterator[Finding]:
    """AL-04's half: a rule that exists and may not call leaves no error anywhere."""
    group = next((resource.id for resource in stacks.of("AWS::Scheduler::ScheduleGroup")), "default")
    there = [
        account.call("scheduler", "GetSchedule", Name=item["Name"], GroupName=group)
        for item in account.pages("scheduler", "ListSchedules", "Schedules", GroupName=group)
    ]
    wanted = {resource.id for resource in stacks.of("AWS::Scheduler::Schedule")}
    yield finding(
        "schedules",
        "exist",
        Level.FAIL,
        sorted(wanted - {schedule["Name"] for schedule in there}) or ([] if there else ["none"]),
        f"{len(there)} schedules",
        "deploy again: it was removed by hand",
    )
    yield finding(
        "schedules",
        "are enabled",
        Level.FAIL,
        [schedule["Name"] for schedule in there if schedule["State"] != "ENABLED"],
        "all",
        "enable it when the reason is gone: until then nothing starts its function",
    )
    names = {function.name for function in functions}
    yield finding(
        "schedules",
        "start a function of this deployment",
        Level.FAIL,
        [f"{s['Name']} -> {s['Target']['Arn']}" for s in there if _function(s["Target"]) not in names],
        "all",
        "deploy again: its target was changed by hand",
    )
    yield finding(
        "schedules",
        "are tried once, and what is dropped is kept",
        Level.WARN,
        [schedule["Name"] for schedule in there if not _once(schedule["Target"])],
        "no retries, and a dead-letter queue",
        "deploy again: its target was changed by hand",
    )


def check_dead_letters(account: Account, stacks: Stacks) -> Iterator[Finding]:
    """What a schedule could not hand over."""
    held = {
        resource.logical: int(_messages(account, resource.id)["Attributes"]["ApproximateNumberOfMessages"])
        for resource in stacks.of("AWS::SQS::Queue")
    }
    yield finding(
        "schedules",
        "could hand over their events",
        Level.WARN,
        [f"{count} in {name}" for name, count in held.items() if count],
        "no dead letters",
        "read a message: it names the schedule and the error; then purge the queue",
    )


def _messages(account: Account, url: str) -> dict[str, Any]:
    return account.call("sqs", "GetQueueAttributes", QueueUrl=url, AttributeNames=["ApproximateNumberOfMessages"])


def _function(target: dict[str, Any]) -> str:
    """The function's name in the target's ARN, which may end with a version or alias."""
    parts = str(target["Arn"]).split(":")
    return parts[6] if len(parts) > 6 else ""


def _once(target: dict[str, Any]) -> bool:
    retries = target.get("RetryPolicy", {}).get("MaximumRetryAttempts", 185)
    return retries == 0 and "DeadLetterConfig" in target
