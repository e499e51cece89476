"""`stopline local`: the whole deployment on this machine, until Ctrl-C."""

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Annotated, Any

import typer

from stopline.policy import Policy, load_policies
from stopline_cli.local.database import DATABASE, local_server
from stopline_cli.local.deployment import Deployment, grouped
from stopline_cli.local.functions import FunctionFailed
from stopline_cli.local.prepare import JOBS, deploy, load_samples, make_database, make_sample_application
from stopline_cli.local.schedule import Answer, Entry, Schedule
from stopline_cli.options import Json
from stopline_cli.output import print_json, print_lines
from stopline_cli.standins.process import StandInProcess

NAME = "local"
UPKEEP_EVERY_SECONDS = 60


def local(
    samples: Annotated[bool, typer.Option("--samples", help="Load the sample conversations and invoices.")] = False,
    real: Annotated[bool, typer.Option("--real", help="Call the real services, with your AWS credentials.")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Remove the local database first.")] = False,
    as_json: Json = False,
) -> None:
    """Run everything here until Ctrl-C: PostgreSQL, migrated, with pollers, sweeper and monitor at their intervals.

    Bedrock and the accounting connector are stand-ins on loopback unless --real is given. The database is kept.
    """
    policies = load_policies(JOBS)
    server = local_server(NAME)
    if fresh:
        server.destroy()
    say = _silent if as_json else print_lines
    with ExitStack() as stack:
        stack.enter_context(server)
        make_database(server, DATABASE)
        make_sample_application(server, DATABASE)
        migration = deploy(server, DATABASE, policies, identity=NAME)
        say([*migration.lines, *(f"warning: {warning}" for warning in migration.warnings)])
        if samples:
            say(f"loaded {count} sample {what}" for what, count in load_samples(server, DATABASE).items())
        environment = _our_credentials() if real else stack.enter_context(_stand_ins())
        functions = stack.enter_context(Deployment(server, policies, identity=NAME, environment=environment))
        say([f"PostgreSQL: psql -h {server.data_dir} -U postgres {DATABASE}", "Running. Ctrl-C stops.", ""])
        report = _print_json_answer if as_json else _print_answer
        ended = Schedule(_entries(functions, policies), report).run()
        say(["Stopped." if ended else "Stopped without waiting: leases will end what was running."])


def _entries(functions: Deployment, policies: Mapping[str, Policy]) -> list[Entry]:
    groups = grouped(policies)
    pollers = [Entry(poller, _every(groups[name])) for name, poller in functions.pollers.items()]
    upkeep = [Entry(function, UPKEEP_EVERY_SECONDS) for function in (functions.sweeper, functions.monitor)]
    return pollers + upkeep


def _every(kinds: list[Policy]) -> float:
    return min(kind.run.every.total_seconds() for kind in kinds)


@contextmanager
def _stand_ins() -> Iterator[dict[str, str]]:
    """Stand-ins without faults, as the variables by which kinds find them."""
    with StandInProcess("bedrock") as bedrock, StandInProcess("connector") as connector:
        yield {
            "AWS_ENDPOINT_URL_BEDROCK_RUNTIME": bedrock.url,
            "AWS_ACCESS_KEY_ID": "local",
            "AWS_SECRET_ACCESS_KEY": "local",
            "ACCOUNTING_URL": connector.url,
        }


def _our_credentials() -> dict[str, str]:
    """What the AWS SDK and the kinds' own variables need of our environment."""
    ours = ("AWS_", "ACCOUNTING_", "HOME")
    return {name: value for name, value in os.environ.items() if name.startswith(ours)}


def _print_answer(name: str, answer: Answer) -> None:
    if isinstance(answer, FunctionFailed):
        print_lines([f"{name}: failed: {answer.error_type}: {answer.message}"])
    elif "kinds" in answer and isinstance(answer["kinds"], dict):
        print_lines(f"{name}: {kind}: {_poll_in_words(poll)}" for kind, poll in answer["kinds"].items())
    else:
        figures = answer.get("totals", answer)
        shown = ", ".join(f"{key} {value}" for key, value in figures.items() if value and not isinstance(value, dict))
        print_lines([f"{name}: {shown or 'nothing to report'}"])


def _poll_in_words(poll: dict[str, Any]) -> str:
    parts = [f"{count} {answer}" for answer, count in poll.get("tick", {}).items() if count and isinstance(count, int)]
    parts += [f"{count} {outcome}" for outcome, count in poll.get("outcomes", {}).items() if count]
    if poll.get("released"):
        parts.append(f"{poll['released']} released")
    return f"{poll.get('status')}{': ' if parts else ''}{', '.join(parts)}"


def _print_json_answer(name: str, answer: Answer) -> None:
    if isinstance(answer, FunctionFailed):
        print_json({"function": name, "error": {"type": answer.error_type, "message": answer.message}})
    else:
        print_json({"function": name, "result": answer})


def _silent(lines: object) -> None:
    """With --json only answers are printed."""
