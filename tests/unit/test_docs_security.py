"""docs/security.md says of each role what the frozen contract says."""

import json
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_table_of_roles_names_exactly_the_functions_that_each_may_call() -> None:
    contract = json.loads((ROOT / "tests" / "sql" / "contract.json").read_text(encoding="utf-8"))
    granted: dict[str, set[str]] = {}
    for name, function in contract["functions"].items():
        for role in function["callers"]:
            granted.setdefault(role, set()).add(name)
    told = {}
    for line in (ROOT / "docs" / "security.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `stopline_"):
            role, functions = (re.findall(r"`([a-z_]+)`", cell) for cell in line.split("|")[1:3])
            told[role[0]] = set(functions)
    assert told == granted
