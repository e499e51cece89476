"""The doctor's look at a deployment on AWS, on moto's services."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stopline.migrate.findings import Finding, Level, fail, ok
from stopline_cli.doctor.account import Account
from stopline_cli.doctor.deployment import look_at, migrator
from stopline_cli.errors import CommandError
from tests.support.aws_account import REGION, Deployment, deployment


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[Deployment]:
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with deployment() as found:
        yield found


def findings(aws: Deployment) -> dict[tuple[str, str], Finding]:
    return {(f.part, f.name): f for f in look_at(aws.account, "Stopline")}


def wrong(aws: Deployment) -> dict[tuple[str, str], tuple[Level, str]]:
    return {key: (f.level, f.found) for key, f in findings(aws).items() if f.level != Level.OK}


def test_a_deployment_that_is_well_has_only_ok_lines_the_databases_among_them(aws: Deployment) -> None:
    aws.findings = [ok("schema", "version", "at 0001, as this code").to_row()]
    found = findings(aws)
    assert wrong(aws) == {}
    assert {part for part, _ in found} == {"stacks", "functions", "schedules", "alarms", "schema"}
    assert found["functions", "are ready"].found == "3 functions"
    assert aws.invoked[0] == {"doctor": True}


def test_what_the_database_says_of_itself_is_passed_on_as_it_is(aws: Deployment) -> None:
    told = fail("rows", "claimed rows have a lease", "job 7", "set lease_until")
    aws.findings = [told.to_row()]
    assert findings(aws)["rows", "claimed rows have a lease"] == told


def test_a_database_that_cannot_be_reached_is_a_failure_with_the_functions_own_words(aws: Deployment) -> None:
    aws.function_error = "cannot connect to database app at db:5432"
    assert wrong(aws) == {
        ("database", "could be looked at"): (
            Level.FAIL,
            "function Stopline-Migrator: cannot connect to database app at db:5432",
        )
    }


def test_a_schedule_that_is_disabled_retries_or_starts_something_else_is_named(aws: Deployment) -> None:
    """AL-04: it exists and nothing runs; no function has an error."""
    other = f"arn:aws:lambda:{REGION}:123456789012:function:Other:live"
    aws.schedule(state="DISABLED", Arn=other, RetryPolicy={"MaximumRetryAttempts": 185})
    assert wrong(aws) == {
        ("schedules", "are enabled"): (Level.FAIL, "every-work"),
        ("schedules", "start a function of this deployment"): (Level.FAIL, f"every-work -> {other}"),
        ("schedules", "are tried once, and what is dropped is kept"): (Level.WARN, "every-work"),
    }


def test_a_schedule_that_was_removed_by_hand_is_named(aws: Deployment) -> None:
    aws.client("scheduler").delete_schedule(Name="every-work", GroupName="StoplineJobs")
    assert wrong(aws) == {("schedules", "exist"): (Level.FAIL, "every-work")}


def test_events_that_no_function_took_are_counted(aws: Deployment) -> None:
    sqs = aws.client("sqs")
    sqs.send_message(QueueUrl=sqs.get_queue_url(QueueName="dead")["QueueUrl"], MessageBody="{}")
    assert wrong(aws) == {("schedules", "could hand over their events"): (Level.WARN, "1 in DeadLetters")}


def test_a_function_that_was_switched_off_or_would_be_called_again_is_named(aws: Deployment) -> None:
    client = aws.client("lambda")
    client.put_function_concurrency(FunctionName="Stopline-Poller", ReservedConcurrentExecutions=0)
    client.delete_function_event_invoke_config(FunctionName="Stopline-Poller")
    assert wrong(aws) == {
        ("functions", "are switched on"): (Level.FAIL, "Stopline-Poller"),
        ("functions", "are not called again by Lambda"): (Level.WARN, "Stopline-Poller"),
    }


def test_alarms_that_are_gone_silenced_or_without_an_action_are_named(aws: Deployment) -> None:
    """AL-02: an alarm that pages nobody looks like one that does."""
    aws.page(actions=[], enabled=False)
    aws.client("cloudwatch").delete_alarms(AlarmNames=["stuck"])
    assert wrong(aws) == {
        ("alarms", "exist"): (Level.FAIL, "stuck"),
        ("alarms", "may act"): (Level.FAIL, "page"),
        ("alarms", "page"): (Level.FAIL, "page"),
    }


def test_a_topic_that_nobody_reads_is_named(aws: Deployment) -> None:
    sns = aws.client("sns")
    (subscription,) = sns.list_subscriptions_by_topic(TopicArn=aws.topic)["Subscriptions"]
    sns.unsubscribe(SubscriptionArn=subscription["SubscriptionArn"])
    assert wrong(aws) == {("alarms", "wake somebody"): (Level.FAIL, "page")}


def test_a_topic_of_notices_that_nobody_reads_is_a_warning(aws: Deployment) -> None:
    aws.notice(aws.client("sns").create_topic(Name="notices")["TopicArn"])
    assert wrong(aws) == {("alarms", "are noticed"): (Level.WARN, "notices")}


def test_an_alarm_that_is_on_or_has_no_data_is_a_warning(aws: Deployment) -> None:
    cloudwatch = aws.client("cloudwatch")
    cloudwatch.set_alarm_state(AlarmName="stuck", StateValue="ALARM", StateReason="3 rows")
    assert wrong(aws)["alarms", "are quiet"][0] == Level.WARN
    cloudwatch.set_alarm_state(AlarmName="stuck", StateValue="INSUFFICIENT_DATA", StateReason="no monitor")
    assert wrong(aws) == {("alarms", "have data"): (Level.WARN, "stuck")}


@pytest.mark.parametrize(
    ("service", "operation", "action", "part"),
    [
        ("lambda", "GetFunctionConfiguration", "lambda:GetFunctionConfiguration", "functions"),
        ("lambda", "GetFunctionConcurrency", "lambda:GetFunctionConcurrency", "functions"),
        ("lambda", "GetFunctionEventInvokeConfig", "lambda:GetFunctionEventInvokeConfig", "functions"),
        ("lambda", "Invoke", "lambda:InvokeFunction", "database"),
        ("scheduler", "ListSchedules", "scheduler:ListSchedules", "schedules"),
        ("scheduler", "GetSchedule", "scheduler:GetSchedule", "schedules"),
        ("sqs", "GetQueueAttributes", "sqs:GetQueueAttributes", "schedules"),
        ("cloudwatch", "DescribeAlarms", "cloudwatch:DescribeAlarms", "alarms"),
        ("sns", "ListSubscriptionsByTopic", "sns:ListSubscriptionsByTopic", "alarms"),
    ],
)
def test_a_missing_right_is_a_failure_that_names_it_and_the_other_parts_are_looked_at(
    aws: Deployment, service: str, operation: str, action: str, part: str
) -> None:
    """What could not be looked at is not well."""
    aws.refuse(service, operation)
    found = findings(aws)
    missing = found[part, "could be looked at"]
    assert missing.level == Level.FAIL
    assert (missing.fix or "").startswith(f"allow {action} to ")
    assert operation in missing.found
    assert ("stacks", "are whole") in found


def test_it_needs_exactly_the_rights_that_the_docs_list(aws: Deployment) -> None:
    called: set[str] = set()

    def note(model: Any, **_: Any) -> None:
        name = "InvokeFunction" if model.name == "Invoke" else model.name
        called.add(f"{model.service_model.service_name}:{name}")

    aws.session.events.register("before-parameter-build", note)
    findings(aws)
    text = (Path(__file__).parents[2] / "docs" / "security.md").read_text(encoding="utf-8")
    listed = text.split("`stopline doctor --aws` only reads")[1].split("## ")[0]
    assert called == set(re.findall(r"`([a-z]+:[A-Za-z]+)`", listed))


def test_a_call_that_fails_for_another_reason_is_a_failure_with_its_code(aws: Deployment) -> None:
    aws.refuse("cloudwatch", "DescribeAlarms", "InternalServiceFault")
    assert wrong(aws)["alarms", "could be looked at"][1].startswith("InternalServiceFault: ")


def test_stacks_that_may_not_be_listed_or_are_not_there_end_the_command_with_what_to_do(aws: Deployment) -> None:
    with pytest.raises(CommandError, match=r"stack OtherDatabase in eu-central-1: does not exist\. Fix: .*--prefix"):
        list(look_at(aws.account, "Other"))
    aws.refuse("cloudformation", "ListStackResources", "AccessDenied")
    with pytest.raises(CommandError, match="Fix: allow cloudformation:ListStackResources"):
        list(look_at(aws.account, "Stopline"))


def test_without_a_region_the_command_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    with pytest.raises(CommandError, match=r"AWS region: is not known\. Fix: set AWS_REGION"):
        Account()


def test_the_migrator_is_told_from_the_function_that_bootstraps(aws: Deployment) -> None:
    assert migrator(aws.account, "Stopline").name == "Stopline-Migrator"
