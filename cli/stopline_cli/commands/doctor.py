"""`stopline doctor`: whether a database or a deployment is what it should be."""

from collections import Counter

import typer

from stopline.migrate.findings import Finding, Level, worst
from stopline_cli.doctor.local import look_at_local
from stopline_cli.options import Aws, Json, On, Place, Prefix
from stopline_cli.output import print_json, print_lines, print_table

UNWELL = 1


def doctor(on: On = Place.LOCAL, aws: Aws = False, prefix: Prefix = "Stopline", as_json: Json = False) -> None:
    """Check a local database, or with --aws a deployment and its database, and say what to do about what is wrong.

    Everything is only read. The exit status is 1 when something failed or could not be looked at; warnings give 0.
    """
    found = _on_aws(prefix) if aws else look_at_local(on.value)
    counts = Counter(str(finding.level) for finding in found)
    if as_json:
        print_json({"worst": str(worst(found)), "findings": [finding.to_row() for finding in found]})
    else:
        where = f"deployment {prefix}" if aws else f"{on.value} database"
        print_table(f"Doctor: {where}", ("", "part", "check", "found"), [_row(finding) for finding in found])
        print_lines(["", ", ".join(f"{counts[level]} {level}" for level in Level)])
    if worst(found) is Level.FAIL:
        raise typer.Exit(UNWELL)


def _on_aws(prefix: str) -> list[Finding]:
    # The AWS SDK takes longer to import than most commands to run.
    from stopline_cli.doctor.account import Account
    from stopline_cli.doctor.deployment import look_at

    return list(look_at(Account(), prefix))


def _row(finding: Finding) -> tuple[object, ...]:
    told = finding.found if finding.fix is None else f"{finding.found}\nFix: {finding.fix}"
    return str(finding.level), finding.part, finding.name, told
