"""Functions: that they can run, and that they are called once."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from botocore.exceptions import ClientError

from stopline.migrate.findings import Finding, Level
from stopline_cli.doctor.account import Account
from stopline_cli.doctor.checks import finding
from stopline_cli.doctor.stacks import Stacks

_OURS = "STOPLINE_DB_HOST"
_MIGRATOR = "STOPLINE_SQL_DIR"
_MIGRATORS_OWN = "STOPLINE_INSTALLATION"


@dataclass(frozen=True, slots=True)
class Function:
    """One function of the deployment that works on the database; the CDK's own helpers are none."""

    name: str
    configuration: dict[str, Any] = field(repr=False)

    @property
    def environment(self) -> dict[str, str]:
        """Its variables."""
        return dict(self.configuration.get("Environment", {}).get("Variables", {}))

    @property
    def is_migrator(self) -> bool:
        """The function that holds the SQL and speaks for a deployment (bootstrap has the SQL and no identity)."""
        return {_MIGRATOR, _MIGRATORS_OWN} <= self.environment.keys()


def find_functions(account: Account, stacks: Stacks) -> list[Function]:
    """The deployment's functions with their configuration."""
    found = [
        Function(resource.id, account.call("lambda", "GetFunctionConfiguration", FunctionName=resource.id))
        for resource in stacks.of("AWS::Lambda::Function")
    ]
    return [function for function in found if _OURS in function.environment]


def check_functions(account: Account, functions: list[Function]) -> Iterator[Finding]:
    """State, last update, switched off, and how often an event is tried."""
    yield finding(
        "functions",
        "are ready",
        Level.FAIL,
        [f"{f.name}: {state}" for f in functions if (state := f.configuration.get("State")) == "Failed"],
        f"{len(functions)} functions",
        "see StateReason in the Lambda console; a deploy makes it anew",
    )
    yield finding(
        "functions",
        "run what was deployed last",
        Level.FAIL,
        [
            f"{f.name}: {f.configuration.get('LastUpdateStatusReason', 'failed')}"
            for f in functions
            if f.configuration.get("LastUpdateStatus") == "Failed"
        ],
        "every last update succeeded",
        "deploy again",
    )
    yield finding(
        "functions",
        "are switched on",
        Level.FAIL,
        [f.name for f in functions if _reserved(account, f.name) == 0],
        "none has a concurrency of 0",
        "somebody stopped it with a reserved concurrency of 0: remove that when the reason is gone",
    )
    yield finding(
        "functions",
        "are not called again by Lambda",
        Level.WARN,
        [f.name for f in functions if _retries(account, f.name) != 0],
        "an event that fails or waits is dropped: the next schedule comes",
        "set MaximumRetryAttempts to 0, as the stack does: late repeats only add load",
    )


def _reserved(account: Account, name: str) -> int | None:
    answer = account.call("lambda", "GetFunctionConcurrency", FunctionName=name)
    return answer.get("ReservedConcurrentExecutions")


def _retries(account: Account, name: str) -> int:
    """Lambda's own default is two."""
    try:
        answer = account.call("lambda", "GetFunctionEventInvokeConfig", FunctionName=name)
    except ClientError as error:
        if error.response["Error"]["Code"] != "ResourceNotFoundException":
            raise
        return 2
    return int(answer.get("MaximumRetryAttempts", 2))
