"""`make guards`: prints what each removal broke, and exits 1 when a removal broke nothing."""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.guards.catalogue import GUARDS, Guard
from tests.support.run import SQL_VARIABLE

CHECKOUT = Path(__file__).parents[2]


def main(arguments: list[str]) -> int:
    """Removes the guards whose names contain an argument; all without arguments."""
    chosen = [guard for guard in GUARDS if not arguments or any(word in guard.name for word in arguments)]
    if not chosen:
        print(f"no guard is named like {' or '.join(arguments)}; see tests/guards/catalogue.py", file=sys.stderr)
        return 2
    files = sorted({test for guard in chosen for test in guard.tests})
    print(f"whole: {', '.join(files)} must pass with every guard in place", flush=True)
    code, output = _run(CHECKOUT / "sql", files, stop_early=False)
    if code != 0:
        print(output)
        return 1
    survivors = [guard.name for guard in chosen if not _caught(guard)]
    print(
        f"{len(chosen)} guards removed, {len(survivors)} survivors"
        + "".join(f"\n  SURVIVOR {name}" for name in survivors)
    )
    return 1 if survivors else 0


def _caught(guard: Guard) -> bool:
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="stopline-guards-") as folder:
        scratch = Path(folder) / "sql"
        shutil.copytree(CHECKOUT / "sql", scratch)
        _remove(guard, scratch / guard.file)
        code, output = _run(scratch, list(guard.tests), stop_early=True)
    # Errors do not count: a copy that cannot even be migrated shows nothing about the tests.
    broken = [line.split(" - ")[0].split("::")[-1] for line in output.splitlines() if line.startswith("FAILED")]
    caught = code != 0 and bool(broken)
    verdict = f"caught by {broken[0]}" if caught else f"SURVIVED (pytest ended with {code})"
    print(f"{time.monotonic() - started:5.1f} s  {guard.name}: {verdict}", flush=True)
    return caught


def _remove(guard: Guard, file: Path) -> None:
    text = file.read_text()
    before, anchor, rest = text.partition(guard.after) if guard.after else ("", "", text)
    if guard.old not in rest:
        raise SystemExit(
            f"guard {guard.name!r}: sql/{guard.file} has no {guard.old!r} after {guard.after!r}; "
            "bring tests/guards/catalogue.py in step with the SQL"
        )
    file.write_text(before + anchor + rest.replace(guard.old, guard.new, 1))


def _run(sql: Path, tests: list[str], *, stop_early: bool) -> tuple[int, str]:
    early = ["--maxfail=1"] if stop_early else []
    paths = [f"tests/sql/{test}" for test in tests]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider", "-n", "2", *early, *paths],
        cwd=CHECKOUT,
        env={**os.environ, SQL_VARIABLE: str(sql)},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
