"""What an execution environment wrote: the function's own lines, and the platform's about each invocation."""

import json
import re
from pathlib import Path
from typing import Any

_REPORT = re.compile(r"REPORT RequestId: (\S+)\t.*?\bDuration: ([0-9.]+) ms\tBilled")
_INIT = re.compile(r"\(rapid\) INIT REPORT\(durationMs: ([0-9.]+)\)")
_PLATFORM = re.compile(r"\(rapid\)|^(START|END|REPORT) RequestId: ")


class Log:
    """The file into which the emulator writes everything."""

    def __init__(self, file: Path) -> None:
        self._file = file

    @property
    def everything(self) -> list[str]:
        return self._file.read_text(encoding="utf-8", errors="replace").split("\n")

    @property
    def lines(self) -> list[str]:
        """What the function wrote, one entry for each line that CloudWatch would get."""
        return [line for line in self.everything if line and not _PLATFORM.search(line)]

    @property
    def objects(self) -> list[dict[str, Any]]:
        """The lines that are JSON objects."""
        found = []
        for line in self.lines:
            try:
                value = json.loads(line)
            except ValueError:
                continue
            if isinstance(value, dict):
                found.append(value)
        return found

    def events(self, message: str) -> list[dict[str, Any]]:
        """The log lines of one event."""
        return [line for line in self.objects if line.get("message") == message]

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """The lines that CloudWatch would read metrics from."""
        return [line for line in self.objects if "_aws" in line]

    @property
    def init_ms(self) -> list[float]:
        """How long each start of the runtime took, imports included, in milliseconds."""
        return [float(match[1]) for line in self.everything if (match := _INIT.search(line))]

    @property
    def durations_ms(self) -> list[float]:
        """How long each invocation took, in milliseconds. A cold one contains its start."""
        return [float(match[2]) for line in self.everything if (match := _REPORT.search(line))]
