"""Succeeds."""

from stopline import Job


def run(job: Job) -> object:
    return {"key": job.key}
