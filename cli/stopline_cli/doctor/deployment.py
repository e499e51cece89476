"""A deployment on AWS as a whole: its stacks, what they hold, and its database through the migrator."""

import json
from collections.abc import Iterator
from typing import Any

from stopline.migrate.findings import Finding, Level, fail
from stopline_cli.doctor.account import Account, MissingRight
from stopline_cli.doctor.alarms import check_alarms
from stopline_cli.doctor.checks import finding, guarded
from stopline_cli.doctor.functions import Function, check_functions, find_functions
from stopline_cli.doctor.schedules import check_dead_letters, check_schedules
from stopline_cli.doctor.stacks import Stacks, find_stacks
from stopline_cli.errors import CommandError


def look_at(account: Account, prefix: str) -> Iterator[Finding]:
    """Every check of the deployment `prefix`. Raises CommandError when its stacks cannot be listed at all."""
    try:
        stacks = find_stacks(account, prefix)
    except MissingRight as missing:
        raise CommandError(
            f"stacks of {prefix}", f"may not be listed: {missing}", f"allow {missing.action} to whoever runs the doctor"
        ) from None
    functions: list[Function] = []

    def ready() -> Iterator[Finding]:
        functions.extend(find_functions(account, stacks))
        yield from check_functions(account, functions)

    yield from _stack_state(stacks)
    yield from guarded("functions", ready)
    yield from guarded("schedules", lambda: check_schedules(account, stacks, functions))
    yield from guarded("schedules", lambda: check_dead_letters(account, stacks))
    yield from guarded("alarms", lambda: check_alarms(account, stacks))
    yield from guarded("database", lambda: _database(account, functions))


def migrator(account: Account, prefix: str) -> Function:
    """The deployment's migrator. Raises CommandError when there is none, or it cannot be found."""
    try:
        found = [f for f in find_functions(account, find_stacks(account, prefix)) if f.is_migrator]
    except MissingRight as missing:
        raise CommandError(
            f"the migrator of {prefix}", f"cannot be found: {missing}", f"allow {missing.action} to the caller"
        ) from None
    if not found:
        raise CommandError(f"the migrator of {prefix}", "is not among the stack's functions", "deploy again")
    return found[0]


def invoke(account: Account, function: Function, event: dict[str, Any]) -> dict[str, Any]:
    """Calls the function and waits for its answer. Raises CommandError with its error, and MissingRight."""
    answer = account.call("lambda", "Invoke", FunctionName=function.name, Payload=json.dumps(event).encode())
    told = json.loads(answer["Payload"].read() or b"null")
    if "FunctionError" in answer or not isinstance(told, dict):
        message = told.get("errorMessage", "gave no answer") if isinstance(told, dict) else "gave no answer"
        raise CommandError(f"function {function.name}", message, "see its log")
    return told


def _stack_state(stacks: Stacks) -> Iterator[Finding]:
    yield finding(
        "stacks",
        "are whole",
        Level.WARN,
        [f"{r.stack}/{r.logical}: {r.status}" for r in stacks.resources if r.status.endswith("FAILED")],
        f"{len(stacks.resources)} resources",
        "deploy again, and read the stack's events",
    )


def _database(account: Account, functions: list[Function]) -> Iterator[Finding]:
    """What the migrator finds: it holds the deployed SQL and policies, and can reach the database."""
    found = [function for function in functions if function.is_migrator]
    if not found:
        yield fail("database", "could be looked at", "no migrator was found", "see the lines on functions")
        return
    try:
        answer = invoke(account, found[0], {"doctor": True})
    except CommandError as error:
        yield fail("database", "could be looked at", f"{error.thing}: {error.rule}", error.fix)
        return
    for row in answer.get("findings", []):
        yield Finding.from_row(row)
