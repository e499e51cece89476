"""The monitoring stack's template: what each alarm is set to, whom it tells, what the page is made of."""

from typing import Any

import pytest

from stacks.alarm_rules import RULES, Missing
from stacks.constructs.alarms import MOST_CHARACTERS, MOST_CHILDREN, paging_rule
from stacks.metric_prices import kind_price
from stopline.policy import Policy
from tests.infra.watching import Watching, shipped, watch, with_own_metrics

# name: metric, statistic, comparison with the threshold, M of N, seconds, missing data
SETTINGS = {
    "monitor-silent": ("Heartbeat", "Sum", "<1", "1 of 3", 60, "breaching"),
    "stuck": ("KindsStuck", "Maximum", ">=1", "2 of 3", 60, "ignore"),
    "abandoned": ("KindsAbandoned", "Maximum", ">=1", "1 of 1", 60, "ignore"),
    "uncertain-overdue": ("KindsUncertainOverdue", "Maximum", ">=1", "1 of 1", 60, "ignore"),
    "late": ("KindsLate", "Maximum", ">=1", "3 of 5", 60, "ignore"),
    "pollers-silent": ("PollersSilent", "Maximum", ">=1", "2 of 3", 60, "ignore"),
    "sweeper-silent": ("SweeperSilent", "Maximum", ">=1", "2 of 3", 60, "ignore"),
    "over-budget": ("KindsOverBudget", "Maximum", ">=1", "1 of 1", 60, "ignore"),
    "schedule-dead-letters": ("ApproximateNumberOfMessagesVisible", "Maximum", ">=1", "1 of 1", 300, "notBreaching"),
    "database-cpu": ("CPUUtilization", "Average", ">=90", "10 of 15", 60, "ignore"),
    "database-connections": ("DatabaseConnections", "Maximum", ">=604", "3 of 5", 60, "ignore"),
}
PAGING = {
    "monitor-silent", "stuck", "abandoned", "uncertain-overdue", "late", "pollers-silent", "sweeper-silent",
}  # fmt: skip
SIGNS = {
    "GreaterThanOrEqualToThreshold": ">=",
    "GreaterThanThreshold": ">",
    "LessThanThreshold": "<",
}


def alarms(watching: Watching) -> dict[str, dict[str, Any]]:
    """Properties by name without the prefix."""
    found = watching.resources("AWS::CloudWatch::Alarm").values()
    return {alarm["AlarmName"].removeprefix("Stopline-"): alarm for alarm in found}


def settings(alarm: dict[str, Any]) -> tuple[object, ...]:
    return (
        alarm["MetricName"],
        alarm["Statistic"],
        f"{SIGNS[alarm['ComparisonOperator']]}{alarm['Threshold']:g}",
        f"{alarm['DatapointsToAlarm']} of {alarm['EvaluationPeriods']}",
        alarm["Period"],
        alarm["TreatMissingData"],
    )


def topic(watching: Watching, word: str) -> dict[str, str]:
    (logical_id,) = (each for each in watching.resources("AWS::SNS::Topic") if word in each)
    return {"Ref": logical_id}


def composite(watching: Watching) -> dict[str, Any]:
    (found,) = watching.resources("AWS::CloudWatch::CompositeAlarm").values()
    return found


def test_every_alarm_has_the_threshold_and_the_missing_data_rule_that_were_decided() -> None:
    """AL-02: each choice is written in the template, none is left at CloudWatch's default."""
    assert {name: settings(alarm) for name, alarm in alarms(shipped()).items()} == SETTINGS


def test_only_silence_breaches_by_missing_data_and_every_choice_has_its_reason() -> None:
    """AL-02: an outage must not show as INSUFFICIENT_DATA everywhere and page nobody."""
    assert {rule.name for rule in RULES if rule.missing == Missing.BREACHING} == {"monitor_silent"}
    assert all(len(rule.missing_why) > 30 for rule in RULES)


def test_the_page_is_what_needs_a_person_now_and_no_failed_attempt() -> None:
    """AL-05: abandoned, uncertain, expired leases, late work and silence; money and load tell, and wake nobody."""
    children = {f'ALARM("Stopline-{name}")' for name in PAGING}
    assert set(composite(shipped())["AlarmRule"].split(" OR ")) == children


def test_the_page_is_made_after_the_alarms_that_it_names() -> None:
    (resource,) = (
        each for each in shipped().template["Resources"].values() if each["Type"] == "AWS::CloudWatch::CompositeAlarm"
    )
    named = {
        logical_id
        for logical_id, alarm in shipped().resources("AWS::CloudWatch::Alarm").items()
        if alarm["AlarmName"] in resource["Properties"]["AlarmRule"]
    }
    assert len(named) == len(PAGING)
    assert named <= set(resource["DependsOn"])


def test_the_page_goes_to_one_topic_and_every_single_alarm_to_the_other() -> None:
    watching = shipped()
    pages, notices = topic(watching, "Pages"), topic(watching, "Notices")
    assert composite(watching)["AlarmActions"] == composite(watching)["OKActions"] == [pages]
    for alarm in alarms(watching).values():
        assert alarm["AlarmActions"] == alarm["OKActions"] == [notices]


def test_a_rule_above_cloudwatchs_limits_is_refused() -> None:
    assert len(paging_rule([f"a-{number}" for number in range(MOST_CHILDREN)])) < MOST_CHARACTERS
    with pytest.raises(ValueError, match="101 alarms"):
        paging_rule([f"a-{number}" for number in range(MOST_CHILDREN + 1)])
    with pytest.raises(ValueError, match="at most 100 and 10,240"):
        paging_rule(["x" * 250 for _ in range(50)])


@pytest.mark.parametrize("word", ["Pages", "Notices"])
def test_a_topic_takes_only_tls_and_only_alarms_of_its_own_account(word: str) -> None:
    """A policy of its own takes the place of the default one: without the second statement no alarm could publish."""
    reference = topic(shipped(), word)
    (policy,) = (each for each in shipped().resources("AWS::SNS::TopicPolicy").values() if reference in each["Topics"])
    deny, allow = policy["PolicyDocument"]["Statement"]
    assert (deny["Effect"], deny["Condition"]) == ("Deny", {"Bool": {"aws:SecureTransport": "false"}})
    assert (deny["Principal"], deny["Resource"]) == ("*", reference)
    assert (allow["Effect"], allow["Action"], allow["Resource"]) == ("Allow", "sns:Publish", reference)
    assert allow["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
    assert allow["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    assert "aws:SourceArn" in allow["Condition"]["ArnLike"]


def test_an_address_is_subscribed_to_both_topics_when_one_is_given(policies: dict[str, Policy]) -> None:
    assert shipped().resources("AWS::SNS::Subscription") == {}
    told = watch(policies, alarm_email="on-call@example.com")
    found = told.resources("AWS::SNS::Subscription").values()
    assert {(each["Protocol"], each["Endpoint"]) for each in found} == {("email", "on-call@example.com")}
    assert [each["TopicArn"] for each in found] == [topic(told, "Pages"), topic(told, "Notices")]


def test_a_database_that_is_not_ours_has_no_alarms_and_no_graphs_of_its_own(policies: dict[str, Policy]) -> None:
    theirs = watch(policies, cluster=False)
    assert set(alarms(theirs)) == {name for name in SETTINGS if not name.startswith("database")}
    assert "AWS/RDS" not in str(theirs.widgets)


def test_a_kind_that_asks_has_alarms_of_its_own_and_is_told_their_price(policies: dict[str, Policy]) -> None:
    asked = {"close_conversation": with_own_metrics(policies)["close_conversation"]}
    watching = watch(policies | asked)
    own = {name: alarm for name, alarm in alarms(watching).items() if name not in SETTINGS}
    assert {name: settings(alarm) for name, alarm in own.items()} == {
        "stuck-close_conversation": ("Stuck", "Maximum", ">=1", "2 of 3", 60, "ignore"),
        "abandoned-close_conversation": ("AbandonedOpen", "Maximum", ">=1", "1 of 1", 60, "ignore"),
        "uncertain-overdue-close_conversation": ("UncertainOverdue", "Maximum", ">=1", "1 of 1", 60, "ignore"),
        "late-close_conversation": ("OldestDueAge", "Maximum", ">1800", "3 of 5", 60, "ignore"),
    }
    assert composite(watching) == composite(shipped())
    price = kind_price(asked["close_conversation"])
    assert f"{price:.2f}" == "4.00"
    line = f"close_conversation: own_metrics costs ${price} a month (12 metrics x $0.30 + 4 alarms x $0.10)"
    assert watching.arithmetic == (line,)
    assert watching.template["Outputs"]["OwnMetrics"]["Value"] == line


def test_the_price_of_several_kinds_is_summed_up(policies: dict[str, Policy]) -> None:
    asked = with_own_metrics(policies)
    assert shipped().arithmetic == ()
    assert watch(asked).arithmetic[-1] == "own_metrics of 2 kinds: $8.00 a month"


def test_a_description_fits_and_says_what_it_means_what_to_run_and_where_to_read_on() -> None:
    for rule in RULES:
        alarm = alarms(shipped())[rule.name.replace("_", "-")]
        text = alarm["AlarmDescription"]
        assert len(text) <= 1024
        assert rule.meaning in text
        assert rule.first_query in text
        assert text.endswith(rule.runbook)


def test_the_dashboard_shows_every_alarm_and_the_worst_case_of_every_kind(policies: dict[str, Policy]) -> None:
    found = shipped().widgets
    (status,) = (each for each in found if each["type"] == "alarm")
    assert len(status["properties"]["alarms"]) == len(SETTINGS) + 1
    (text,) = (each["properties"]["markdown"] for each in found if each["type"] == "text")
    for kind in policies:
        assert f"| {kind} |" in text
    assert "5 attempts x 1 call x $0.20 = at most $1.00 a round" in text
