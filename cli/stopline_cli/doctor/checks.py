"""The shape of a check: what offends, or that it could not be made."""

from collections.abc import Callable, Iterable, Iterator

from botocore.exceptions import ClientError

from stopline.migrate.findings import Finding, Level, fail, ok
from stopline_cli.doctor.account import MissingRight

_NAMED = 5


def finding(part: str, name: str, level: Level, offenders: Iterable[str], well: str, fix: str) -> Finding:
    """`well` without offenders; otherwise the first few of them, at `level`, with the fix."""
    listed = list(offenders)
    if not listed:
        return ok(part, name, well)
    more = f" and {len(listed) - _NAMED} more" if len(listed) > _NAMED else ""
    return Finding(part, name, level, f"{', '.join(listed[:_NAMED])}{more}", fix)


def guarded(part: str, check: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """The check's findings as far as it gets. What could not be looked at is a finding too, never silence."""
    try:
        yield from check()
    except MissingRight as missing:
        yield fail(part, "could be looked at", str(missing), f"allow {missing.action} to whoever runs the doctor")
    except ClientError as error:
        told = error.response["Error"]
        yield fail(
            part, "could be looked at", f"{told['Code']}: {told['Message']}", "try again; the resource may be changing"
        )
