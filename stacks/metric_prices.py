"""What watching costs a month, in US dollars: CloudWatch's list prices for us-east-1, November 2026, first tier.

https://aws.amazon.com/cloudwatch/pricing/. Other regions differ little; the free tier is not counted.
"""

from collections.abc import Iterable
from decimal import Decimal

from stacks.alarm_rules import RULES, kind_rules
from stopline.policy import Policy

METRIC = Decimal("0.30")
ALARM = Decimal("0.10")
COMPOSITE_ALARM = Decimal("0.50")
DASHBOARD = Decimal("3.00")

TOTAL_METRICS = 23
"""The monitor's totals and the pollers' reconnects; a test counts them."""

KIND_METRICS = 12
"""How many metrics the monitor writes for a kind with `own_metrics`; a test counts them."""


def watching_price() -> Decimal:
    """A month of the totals, their alarms, the page and the dashboard, however many kinds there are."""
    return TOTAL_METRICS * METRIC + len(RULES) * ALARM + COMPOSITE_ALARM + DASHBOARD


def kind_price(policy: Policy) -> Decimal:
    """A month of one kind's own metrics and alarms."""
    return KIND_METRICS * METRIC + len(kind_rules(policy)) * ALARM


def price_lines(policies: Iterable[Policy]) -> list[str]:
    """One line for each kind that asked for its own metrics, and their sum if there are several."""
    asked = [policy for policy in policies if policy.alarms.own_metrics]
    lines = [
        f"{policy.name}: own_metrics costs ${kind_price(policy)} a month "
        f"({KIND_METRICS} metrics x ${METRIC} + {len(kind_rules(policy))} alarms x ${ALARM})"
        for policy in asked
    ]
    if len(asked) > 1:
        lines.append(f"own_metrics of {len(asked)} kinds: ${sum(map(kind_price, asked))} a month")
    return lines
