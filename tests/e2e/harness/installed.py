"""Where `make test-e2e` put the emulator and the packages of Lambda's Python runtime."""

import os
from pathlib import Path

VARIABLE = "STOPLINE_TEST_LAMBDA"
_ROOT = Path(__file__).parents[3]


def installed() -> Path:
    """The folder with `emulator`, a program, and `runtime/`, packages."""
    named = os.environ.get(VARIABLE)
    found = [_ROOT / named] if named else sorted((_ROOT / ".venv").glob("lambda-*"))
    for folder in found:
        if (folder / "emulator").is_file():
            return folder
    raise FileNotFoundError("the Lambda runtime emulator is not installed. `make test-e2e` fetches it, once")
