"""What synth works out before anything exists, and what it refuses."""

from pathlib import Path
from typing import Any

import pytest

from stacks.checks import CheckFailed, arithmetic, check_deployment, connections, invocations, network_prices
from stacks.config_load import read_config
from stacks.pollers import PollerPlan, plan_pollers
from stacks.prices import endpoint_month, nat_month
from stopline.policy import Policy, overlay
from tests.infra.jobs_stack import PLAIN, config, kinds

SMALLEST = 189
"""What Aurora allows with one ACU."""


def test_the_arithmetic_of_the_shipped_kinds_is_this(policies: dict[str, Policy]) -> None:
    """What synth prints, held here so that a change of it is seen in a review."""
    assert arithmetic(config(), policies, plan_pollers(policies), 756) == [
        "accounting_export: 4 attempts x 1 call = at most 4 calls a round; no price is set (per_attempt_usd in [cost])",
        "close_conversation: 5 attempts x 1 call x $0.20 = at most $1.00 a round; at most $50.00 a day",
        "database connections: at most 13 of 756 (accounting_export: 1 at once; close_conversation: 5 at once + 4 of "
        "job.connect() = 9; sweeper: 2; monitor: 1)",
        "invocations: at most 9 at once, of the account's concurrency quota",
        "network: the internet, about $36.50 a month for 1 NAT gateway, and $0.045 a GB",
    ]


def test_synth_tells_what_each_way_out_costs_and_nothing_where_there_is_none() -> None:
    """The price of what a deployment has, as of what it lacks."""
    endpoint = "about $14.60 a month for an endpoint in 2 zones, and $0.01 a GB"
    closed = config(egress="bedrock", secrets_endpoint=True)
    assert list(network_prices(closed)) == [("Bedrock", endpoint), ("Secrets Manager", endpoint)]
    assert not list(network_prices(config(egress="none")))
    assert not list(network_prices(read_config({"config": "examples/existing-database.json"})))


def test_the_shipped_kinds_fit_an_account_whose_quota_is_ten(policies: dict[str, Policy]) -> None:
    """LD-06: a new account runs ten functions at once; overlapping pollers must not push each other out."""
    assert invocations(plan_pollers(policies)) < 10


def test_invocations_overlap_as_often_as_the_timeout_has_intervals(policies: dict[str, Policy]) -> None:
    """Rounded up: one that runs for 61 seconds meets the next minute's."""
    kind = policies["close_conversation"]
    for timeout, every, most in (("5m", "1m", 5), ("61s", "1m", 2), ("60s", "1m", 1), ("3m", "5m", 1)):
        changed = overlay(kind, {"run": {"poller_timeout": timeout, "every": every, "timeout": "20s"}})
        assert PollerPlan("p", (changed,)).invocations == most


@pytest.mark.parametrize(
    ("run", "role", "most"),
    [
        ({"children": 2, "concurrency": 4}, True, 5 + 4),
        ({"children": 2, "concurrency": None}, True, 5 + 5 * 2),
        ({"children": 1, "concurrency": 10}, True, 5 + 5),
        ({"children": 2, "concurrency": 4}, False, 5),
    ],
)
def test_the_jobs_own_connections_are_counted(
    run: dict[str, Any], role: bool, most: int, policies: dict[str, Policy]
) -> None:
    """One for each running job of a kind with a database role, bounded by its concurrency."""
    access = {"database_role": "app" if role else None}
    kind = overlay(policies["close_conversation"], {"run": run, "access": access})
    assert PollerPlan("p", (kind,)).connections == most


@pytest.mark.parametrize(
    ("schedule", "most"),
    [("rate(1 minute)", 2), ("rate(1 day)", 2), ("cron(0 6 * * ? *)", 2), ("cron(* * * * ? *)", 2)],
)
def test_a_periodic_kinds_own_events_overlap_too(schedule: str, most: int, policies: dict[str, Policy]) -> None:
    """They start the same function."""
    changes = {"run": {"poller_timeout": "60s", "timeout": "20s"}, "enqueue": {"schedule": schedule}}
    kind = overlay(policies["close_conversation"], changes)
    assert PollerPlan("p", (kind,)).invocations == most


def test_more_connections_than_the_database_allows_are_refused(policies: dict[str, Policy]) -> None:
    """Twice the bound, for a deploy leaves old connections behind, within four fifths of what the database allows."""
    kind = overlay(policies["close_conversation"], {"run": {"children": 30, "concurrency": None}})
    pollers = plan_pollers({"close_conversation": kind})
    assert connections(pollers) == 5 + 5 * 30 + 3
    check_deployment(config(), 1000, pollers)
    with pytest.raises(CheckFailed) as raised:
        check_deployment(config(), SMALLEST, pollers)
    text = str(raised.value)
    for part in ("158 at once", "316", "above 151", "189", "Raise database.max_acu", "close_conversation: 5 at once"):
        assert part in text


def test_the_smallest_database_carries_the_shipped_kinds(policies: dict[str, Policy]) -> None:
    """With room for an application beside them."""
    check_deployment(config(), SMALLEST, plan_pollers(policies))


@pytest.mark.parametrize(
    ("egress", "asked", "fixes"),
    [
        ("none", "internet", ['set egress = "nat" (about $36.50 a month']),
        ("bedrock", "internet", ['set egress = "nat" (about $36.50 a month']),
        ("none", "bedrock", ['set egress = "bedrock" (about $14.60 a month', "$36.50 a month"]),
    ],
)
def test_a_kind_whose_way_out_is_missing_is_refused_with_the_price_of_adding_it(
    egress: str, asked: str, fixes: list[str], policies: dict[str, Policy]
) -> None:
    """LD-05: found out at synth, and not by a time-out in the first attempt."""
    kind = overlay(policies["close_conversation"], {"access": {"egress": asked}})
    with pytest.raises(CheckFailed) as raised:
        check_deployment(config(egress=egress), 756, plan_pollers({"close_conversation": kind}))
    text = str(raised.value).lower()
    for part in (": access.egress: ", f'is "{asked}"', f'"{egress}"', *fixes, "deploy without close_conv"):
        assert part.lower() in text


def test_an_existing_network_is_told_another_fix(policies: dict[str, Policy]) -> None:
    """Its way out is its owner's."""
    existing = read_config({"config": "examples/existing-database.json", "egress": "none"})
    with pytest.raises(CheckFailed, match='Set egress = "existing" if the subnets have a way out'):
        check_deployment(existing, 800, plan_pollers({"accounting_export": policies["accounting_export"]}))


@pytest.mark.parametrize("egress", ["nat", "existing"])
def test_a_deployment_that_reaches_everything_takes_every_kind(egress: Any, policies: dict[str, Policy]) -> None:
    """The default deployment runs the shipped kinds."""
    check_deployment(config(egress=egress), 756, plan_pollers(policies))


@pytest.mark.parametrize(
    ("changes", "kind_egress", "fits"),
    [
        ({"egress": "nat"}, "internet", True),
        ({"egress": "nat"}, "none", False),
        ({"egress": "bedrock"}, "bedrock", False),
        ({"egress": "bedrock", "secrets_endpoint": True}, "bedrock", True),
        ({"egress": "none", "secrets_endpoint": True}, "none", True),
        ({"egress": "existing"}, "none", True),
    ],
)
def test_a_secret_needs_a_way_to_secrets_manager(
    changes: dict[str, Any], kind_egress: str, fits: bool, policies: dict[str, Policy]
) -> None:
    """LD-05: a right alone ends in a time-out."""
    access = {"egress": kind_egress, "secrets": ["app/token"], "bedrock_models": []}
    pollers = plan_pollers({"close_conversation": overlay(policies["close_conversation"], {"access": access})})
    if fits:
        check_deployment(config(**changes), 756, pollers)
        return
    with pytest.raises(CheckFailed, match=r"access\.secrets.*secrets_endpoint = true \(about \$14\.60 a month"):
        check_deployment(config(**changes), 756, pollers)


def test_the_environment_of_a_poller_fits_lambdas_limit(tmp_path: Path) -> None:
    """Lambda refuses more than 4 KB in a deploy's last minutes."""
    long = "".join(f'NAME_{n} = "{"x" * 1000}"\n' for n in range(4))
    found = kinds(tmp_path, {"wordy": f"{PLAIN}[access.environment]\n{long}"})
    with pytest.raises(CheckFailed, match=r"wordy/policy\.toml: access\.environment: .* 4,024 bytes.*3,196"):
        check_deployment(config(), 756, plan_pollers(found))


def test_kinds_of_one_poller_agree_on_a_variable_or_use_another_name(tmp_path: Path) -> None:
    """One would silently win."""
    text = PLAIN + 'poller = "shared"\n[access]\nenvironment = {{ URL = "{}" }}\n'
    found = kinds(tmp_path, {"one": text.format("https://a"), "two": text.format("https://b")})
    with pytest.raises(CheckFailed, match=r"two/policy\.toml: access\.environment: URL is 'https://b', and one"):
        check_deployment(config(), 756, plan_pollers(found))


def test_prices_are_worked_out_from_their_hours() -> None:
    """730 hours of a gateway with its address, of an endpoint in two zones."""
    assert (str(nat_month()), str(nat_month(2))) == ("36.500", "73.000")
    assert str(endpoint_month()) == "14.60"
