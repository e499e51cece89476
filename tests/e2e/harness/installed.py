"""Where `make test-e2e` put the emulator and the packages of Lambda's Python runtime."""

import os
from pathlib import Path

VARIABLE = "STOPLINE_TEST_LAMBDA"
_ROOT = Path(__file__).parents[3]


def installed() -> Path:
    """The folder with `emulator`, a program, and `runtime/`, packages."""
    named = os.environ.get(VARIABLE)
    newest = sorted((_ROOT / ".venv").glob("lambda-*"), key=lambda folder: folder.stat().st_mtime, reverse=True)
    found = [_ROOT / named] if named else newest
    for folder in found:
        if (folder / "emulator").is_file():
            return folder
    raise FileNotFoundError("the Lambda runtime emulator is not installed. `make test-e2e` fetches it, once")
