"""docs/cost.md says what the code says: sums add up, prices and limits are those that synth uses."""

from decimal import Decimal

import pytest

from stacks.checks import POLLER_RESOURCES, ROLE_POLICY_BYTES, STACK_RESOURCES, kinds_that_fit
from stacks.metric_prices import watching_price
from stacks.prices import endpoint_month, nat_month
from stopline.policy import Policy
from tests.support.synth import ROOT

COST = (ROOT / "docs" / "cost.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("section", ["Idle", "Busy"])
def test_the_parts_of_a_deployment_add_up_to_its_sum(section: str) -> None:
    """A reader who checks one sum trusts the page."""
    body = COST.split(f"## {section}\n")[1].split("\n## ")[0]
    rows = [line.split("|") for line in body.splitlines() if line.startswith("|")][2:]
    amounts = [Decimal(row[3].strip().lstrip("$").replace(",", "")) for row in rows]
    assert sum(amounts[:-1]) == amounts[-1]


def test_prices_are_those_that_synths_errors_name() -> None:
    """LD-05: the network's and CloudWatch's stand once in code."""
    for price in (nat_month(), nat_month(2), endpoint_month(), watching_price()):
        assert f"${price:.2f}" in COST


def test_the_number_of_kinds_and_their_resources_are_those_that_synth_counts() -> None:
    """And the limits that they come from."""
    words = {5: "five"}
    assert f"A stack holds {kinds_that_fit()} kinds with pollers of their own" in COST
    assert f"Each kind takes {words[POLLER_RESOURCES]} resources" in COST
    assert f"{ROLE_POLICY_BYTES:,} bytes" in COST
    assert f"{STACK_RESOURCES} resources" in COST


def test_the_most_that_the_shipped_kinds_cost_is_their_policys(policies: dict[str, Policy]) -> None:
    """The page's example is the kind that ships."""
    cost = policies["close_conversation"].cost
    assert f"a job costs at most ${cost.per_job_usd:.2f} and the kind at most ${cost.daily_budget_usd:.2f} a day" in (
        " ".join(COST.split())
    )


def test_every_price_says_where_and_when_it_was_read() -> None:
    """And the page says what could not be verified."""
    assert "us-east-1" in COST
    assert "November 2026" in COST
    assert "Not verified:" in COST
