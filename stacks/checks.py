"""What must hold between the kinds and the deployment before anything is created, and the arithmetic behind it.

Everything here is known at synth, so a deployment that cannot work, or that could cost more than somebody was told, is
refused before it exists. Rules inside one policy are the policy's own (`stopline.policy.rules`).
"""

from collections.abc import Iterator, Mapping, Sequence

from stacks.alarm_rules import DATABASE_CONNECTIONS_SHARE
from stacks.config import Config, ExistingDatabase, NewDatabase
from stacks.constructs.saved_queries import MOST_LOG_GROUPS
from stacks.log_queries import QUERIES, Logs
from stacks.pollers import PollerPlan
from stacks.prices import endpoint_words, nat_words
from stopline.errors import StoplineError
from stopline.policy import Policy, worst_case
from stopline.policy.exposure import dollars

STACK_RESOURCES = 500
"""CloudFormation's limit for one stack."""
FIXED_RESOURCES = 36
"""Of the jobs stack, without any poller; a test counts them."""
POLLER_RESOURCES = 5
"""Function, role, log group, asynchronous settings, schedule. A periodic kind adds one: its own schedule."""
ROLE_POLICY_BYTES = 10_240
"""IAM's limit for all inline policies of one role: the scheduler's names every function that it starts."""
ROLE_POLICY_FIXED = 500
FUNCTION_ARN_BYTES = 127
"""The longest ARN of a function, with its quotes and comma."""
STACK_OUTPUTS = 200
FIXED_OUTPUTS = 10
ENVIRONMENT_BYTES = 4096
"""Lambda's limit for all variables of a function."""
STOPLINES_OWN_BYTES = 900
"""Room for Stopline's own variables, whose values are known at deploy time only."""

SYSTEM_FUNCTIONS = {"sweeper": 2, "monitor": 1}
"""How many invocations can run at once, a connection each: timeout divided by interval (`stacks/jobs.py`)."""
DEPLOY_FACTOR = 2
"""After a deploy the replaced functions' idle connections stay until Lambda reclaims them."""

_REACHED = {
    "none": ("none", "bedrock", "nat", "existing"),
    "bedrock": ("bedrock", "nat", "existing"),
    "internet": ("nat", "existing"),
}
"""For what a kind asks for, the deployment's egress settings that have it."""


class CheckFailed(StoplineError):
    """The kinds do not fit the deployment. Names what, the rule with its figures, and the fix."""


def check_deployment(config: Config, max_connections: int, pollers: Sequence[PollerPlan]) -> None:
    """Raise CheckFailed for the first thing that cannot work."""
    for poller in pollers:
        for policy in poller.kinds:
            _check_egress(config, policy)
            _check_secrets(config, policy)
        _check_environment(poller)
    _check_size(pollers)
    _check_connections(max_connections, pollers)


def kinds_that_fit() -> int:
    """How many kinds with a poller of their own fit into one stack."""
    by_resources = sum(resource_count(number, 0) <= STACK_RESOURCES for number in range(1, STACK_RESOURCES))
    by_role = (ROLE_POLICY_BYTES - ROLE_POLICY_FIXED) // FUNCTION_ARN_BYTES - len(SYSTEM_FUNCTIONS)
    return min(by_resources, by_role, (STACK_OUTPUTS - FIXED_OUTPUTS) // 2)


def resource_count(pollers: int, periodic: int) -> int:
    """Resources of the jobs stack. Saved queries read so many log groups each and come again for further ones."""
    queries = sum(query.logs is Logs.POLLERS for query in QUERIES)
    return FIXED_RESOURCES + POLLER_RESOURCES * pollers + periodic + queries * ((pollers - 1) // MOST_LOG_GROUPS)


def connections(pollers: Sequence[PollerPlan]) -> int:
    """The most database connections at once, without those of a deploy and of people."""
    return sum(poller.connections for poller in pollers) + sum(SYSTEM_FUNCTIONS.values())


def invocations(pollers: Sequence[PollerPlan]) -> int:
    """The most invocations at once, which counts against the account's concurrency quota."""
    return sum(poller.invocations for poller in pollers) + sum(SYSTEM_FUNCTIONS.values())


def worst_cases(policies: Mapping[str, Policy]) -> dict[str, str]:
    """For each kind the most that a job, and a day, of it can cost, worked out."""
    found = {}
    for name, policy in sorted(policies.items()):
        budget = policy.cost.daily_budget_usd
        day = "" if budget is None else f"; at most {dollars(budget)} a day"
        found[name] = f"{worst_case(policy).working}{day}"
    return found


def arithmetic(
    config: Config, policies: Mapping[str, Policy], pollers: Sequence[PollerPlan], max_connections: int
) -> list[str]:
    """The lines that synth prints: money for each kind, then connections, invocations and the network's price."""
    lines = [f"{kind}: {working}" for kind, working in worst_cases(policies).items()]
    parts = "; ".join([*(poller.working for poller in pollers), *(f"{n}: {c}" for n, c in SYSTEM_FUNCTIONS.items())])
    lines.append(f"database connections: at most {connections(pollers)} of {max_connections:,} ({parts})")
    lines.append(f"invocations: at most {invocations(pollers)} at once, of the account's concurrency quota")
    return [*lines, *(f"network: {what}, {price}" for what, price in network_prices(config))]


def network_prices(config: Config) -> Iterator[tuple[str, str]]:
    """What the deployment adds to reach something besides the database, each with its price a month."""
    if config.egress == "nat" and isinstance(config.database, NewDatabase):
        yield "the internet", nat_words(config.database.nat_gateways)
    if config.egress == "bedrock":
        yield "Bedrock", endpoint_words()
    if config.secrets_endpoint:
        yield "Secrets Manager", endpoint_words()


def _check_egress(config: Config, policy: Policy) -> None:
    asked = policy.access.egress
    if config.egress in _REACHED[asked]:
        return
    fixes = "; or ".join([*_ways_out(config, asked), f"deploy without {policy.name} (kinds in the configuration)"])
    raise CheckFailed(
        f'{policy.file}: access.egress: is "{asked}", which is out of reach in this deployment: its egress is '
        f'"{config.egress}". {fixes[0].upper()}{fixes[1:]}'
    )


def _ways_out(config: Config, asked: str) -> Iterator[str]:
    existing = isinstance(config.database, ExistingDatabase)
    if asked == "bedrock":
        yield f'set egress = "bedrock" ({endpoint_words()})'
    if existing:
        yield 'set egress = "existing" if the subnets have a way out (priced by your network)'
    else:
        yield f'set egress = "nat" ({nat_words()})'


def _check_secrets(config: Config, policy: Policy) -> None:
    """Secrets Manager is an AWS service: without a way to it a read times out, and no role can help."""
    if not policy.access.secrets or config.secrets_endpoint or config.egress == "existing":
        return
    if config.egress == "nat" and policy.access.egress != "none":
        return
    raise CheckFailed(
        f"{policy.file}: access.secrets: names secrets, and Secrets Manager is out of reach for a kind with egress = "
        f'"{policy.access.egress}" in this deployment. Set secrets_endpoint = true ({endpoint_words()})'
    )


def _check_environment(poller: PollerPlan) -> None:
    variables: dict[str, tuple[str, str]] = {}
    for policy in poller.kinds:
        for name, value in policy.access.environment.items():
            other, text = variables.setdefault(name, (policy.name, value))
            if text != value:
                raise CheckFailed(
                    f"{policy.file}: access.environment: {name} is {value!r}, and {other}, which shares the poller "
                    f"{poller.name!r}, says {text!r}; make them equal or rename one"
                )
    size = sum(len(name.encode()) + len(text.encode()) for name, (_, text) in variables.items())
    room = ENVIRONMENT_BYTES - STOPLINES_OWN_BYTES
    if size > room:
        raise CheckFailed(
            f"{poller.kinds[0].file}: access.environment: the variables of the poller {poller.name!r} take {size:,} "
            f"bytes, and a function has room for {room:,} beside Stopline's own; put long texts into files of the "
            "kind's folder"
        )


def _check_size(pollers: Sequence[PollerPlan]) -> None:
    kinds = sum(len(poller.kinds) for poller in pollers)
    periodic = sum(len(poller.periodic) for poller in pollers)
    resources = resource_count(len(pollers), periodic)
    fix = "let kinds share pollers (poller in [run]), or deploy some of them under another prefix (kinds)"
    if resources > STACK_RESOURCES or len(pollers) > kinds_that_fit():
        raise CheckFailed(
            f"{len(pollers)} pollers and {periodic} periodic kinds: a stack holds {kinds_that_fit()} pollers "
            f"({STACK_RESOURCES} resources, and {ROLE_POLICY_BYTES:,} bytes for what the scheduler may start); {fix}"
        )
    if kinds + len(pollers) > STACK_OUTPUTS - FIXED_OUTPUTS:
        raise CheckFailed(
            f"{kinds} kinds and {len(pollers)} pollers: a stack has {STACK_OUTPUTS - FIXED_OUTPUTS} outputs for what "
            "each kind may cost and for each poller that the dashboard shows; "
            "deploy some of them under another prefix (kinds)"
        )


def _check_connections(max_connections: int, pollers: Sequence[PollerPlan]) -> None:
    most = DEPLOY_FACTOR * connections(pollers)
    room = int(DATABASE_CONNECTIONS_SHARE * max_connections)
    if most > room:
        working = ", ".join(poller.working for poller in sorted(pollers, key=lambda each: -each.connections)[:5])
        raise CheckFailed(
            f"database connections: the functions may hold {connections(pollers)} at once ({working}, ...), in a "
            f"deploy twice that, {most}: above {room}, which is {DATABASE_CONNECTIONS_SHARE:.0%} of the "
            f"{max_connections} that the database allows. Raise database.max_acu, lower poller_timeout, children or "
            "concurrency in [run], or let kinds share pollers"
        )
