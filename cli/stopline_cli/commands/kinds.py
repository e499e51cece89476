"""`stopline kinds`: what each kind may do and what it can cost at most."""

from dataclasses import asdict

from stopline.policy import Policy, load_policies, worst_case
from stopline_cli.local.prepare import JOBS
from stopline_cli.options import Json
from stopline_cli.output import print_json, print_lines, print_table
from stopline_cli.words import span


def kinds(as_json: Json = False) -> None:
    """The kinds of this checkout, with the limits of each and its worst case."""
    policies = load_policies(JOBS)
    if as_json:
        print_json([{**policy.to_row(), "worst_case": asdict(worst_case(policy))} for policy in policies.values()])
        return
    print_table(
        "Kinds",
        ("kind", "owner", "attempts", "attempt", "backoff", "unanswered", "elapsed"),
        [_row(policy) for policy in policies.values()],
    )
    print_lines(["", *(f"{name}: {worst_case(policy).working}" for name, policy in policies.items())])


def _row(policy: Policy) -> tuple[object, ...]:
    limits, retry = policy.limits, policy.retry
    return (
        policy.name,
        policy.owner,
        f"at most {limits.max_attempts}",
        f"at most {span(policy.run.timeout.total_seconds())}",
        f"{span(retry.base.total_seconds())} to {span(retry.cap.total_seconds())}",
        f"at most {limits.max_crashes}",
        "no limit" if limits.max_elapsed is None else f"at most {span(limits.max_elapsed.total_seconds())}",
    )
