"""Ends in the way that the payload's `do` names."""

import mmap
import os
import sys
import time
from pathlib import Path

from stopline import Job

MIB = 1024 * 1024


def run(job: Job) -> object:
    return globals()[job.payload["do"]](job)


def succeed(job: Job) -> str:
    """What another process of the test can see: one line for each attempt."""
    if "file" in job.payload:
        with Path(job.payload["file"]).open("a") as file:
            file.write(f"{job.id} {job.attempt}\n")
    return "done"


def leave(job: Job) -> None:
    sys.exit(3)


def shout(job: Job) -> str:
    for number in range(4096):
        print(f"{number:06} " + "x" * 2000)
    print("y" * 300_000)
    return "said"


def answer_at_length(job: Job) -> str:
    return "x" * 200_000


def own_memory(job: Job) -> int:
    """Beyond the process's own limit."""
    return len(bytearray(2048 * MIB))


def shared_memory(job: Job) -> int:
    """Beyond what the function has, past the limit of one process, which counts private memory only."""
    held = mmap.mmap(-1, 2048 * MIB)
    for place in range(0, len(held), MIB):
        held[place : place + MIB] = b"x" * MIB
    return len(held)


def origins(job: Job) -> dict[str, str]:
    """Where the modules come from that a function has."""
    import boto3  # noqa: F401

    names = (
        "stopline",
        "psycopg",
        "psycopg_binary",
        "aws_lambda_powertools",
        "boto3",
        "botocore",
        "urllib3",
        "handler",
    )
    return {name: str(sys.modules[name].__file__) for name in names}


def leave_a_daemon(job: Job) -> str:
    """A process with a session of its own that would go on in the next invocation."""
    if os.fork() == 0:
        os.setsid()
        Path(job.payload["pid_file"]).write_text(str(os.getpid()))
        while True:
            time.sleep(60)
    while not Path(job.payload["pid_file"]).exists():
        time.sleep(0.001)
    return "done"
