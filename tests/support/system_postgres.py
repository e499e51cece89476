"""The PostgreSQL of the system, beside the wheel's: an older version, and built with TLS."""

from pathlib import Path

import pytest

OLDEST = "15"
"""The oldest version that Stopline is held to; the wheel brings the newest."""

_DEBIAN = Path("/usr/lib/postgresql")


def system_programs() -> Path | None:
    """The bin folder of PostgreSQL 15, or else of the oldest that the system has; None without any."""
    found = [folder / "bin" for folder in _DEBIAN.glob("[0-9]*") if (folder / "bin" / "postgres").exists()]
    ordered = sorted(found, key=lambda programs: int(programs.parent.name))
    return next((programs for programs in ordered if int(programs.parent.name) >= int(OLDEST)), None)


def needed_programs() -> Path:
    """As `system_programs`; skips the test without any."""
    programs = system_programs()
    if programs is None:
        pytest.skip(f"no PostgreSQL in {_DEBIAN}, and the wheel's has no TLS: apt-get install postgresql-{OLDEST}")
    return programs
