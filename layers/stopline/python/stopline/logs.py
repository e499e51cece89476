"""One JSON logger for every function. A line is an event's name with fixed fields; texts of jobs arrive bounded."""

import sys
from functools import cache
from typing import TextIO, cast

from aws_lambda_powertools import Logger

SERVICE = "stopline"


class _Stdout:
    """Whatever stdout is when a line is written: the Lambda runtime and the tests put their own in its place."""

    def write(self, text: str) -> int:
        return sys.stdout.write(text)

    def flush(self) -> None:
        sys.stdout.flush()


@cache
def get_logger() -> Logger:
    """The logger. Call it with keyword fields: `get_logger().info("attempt", kind=..., job=...)`."""
    return Logger(service=SERVICE, stream=cast(TextIO, _Stdout()), location=None, utc=True)
