"""What a way out of the network costs a month, in US dollars, before taxes: list prices for us-east-1, November 2026.

https://aws.amazon.com/vpc/pricing/ and https://aws.amazon.com/privatelink/pricing/. docs/cost.md says how they were
read and what they leave out.
"""

from decimal import Decimal

HOURS = 730
"""Of a month, as AWS's own calculator has it."""
NAT_GATEWAY_HOUR = Decimal("0.045")
NAT_GATEWAY_GB = Decimal("0.045")
PUBLIC_ADDRESS_HOUR = Decimal("0.005")
ENDPOINT_ZONE_HOUR = Decimal("0.01")
ENDPOINT_GB = Decimal("0.01")


def nat_month(gateways: int = 1) -> Decimal:
    """NAT gateways with their public addresses; data comes on top."""
    return gateways * HOURS * (NAT_GATEWAY_HOUR + PUBLIC_ADDRESS_HOUR)


def endpoint_month(zones: int = 2) -> Decimal:
    """One interface endpoint in so many zones; data comes on top."""
    return zones * HOURS * ENDPOINT_ZONE_HOUR


def nat_words(gateways: int = 1) -> str:
    """The price of NAT as an error names it."""
    noun = "NAT gateway" if gateways == 1 else "NAT gateways"
    return f"about ${nat_month(gateways):.2f} a month for {gateways} {noun}, and ${NAT_GATEWAY_GB:.3f} a GB"


def endpoint_words(zones: int = 2) -> str:
    """The price of an interface endpoint as an error names it."""
    return f"about ${endpoint_month(zones):.2f} a month for an endpoint in {zones} zones, and ${ENDPOINT_GB:.2f} a GB"
