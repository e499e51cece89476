"""Ends the process that imports it, or tries to."""

import sys

from stopline import Job

sys.exit("no configuration found")


def run(job: Job) -> None:
    """Never defined: the line above comes first."""
