"""A job that does nothing."""

from stopline import Job


def run(job: Job) -> None:
    """Return at once."""
