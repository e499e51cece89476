"""Writes a line for each attempt, then does what the payload's `do` names."""

import sys
import time
from pathlib import Path

from stopline import Job

MIB = 1024 * 1024


def run(job: Job) -> str:
    with Path(job.payload["file"]).open("a") as file:
        file.write(f"{job.id} {job.attempt}\n")
    match job.payload.get("do"):
        case "hang":
            time.sleep(600)
        case "leave":
            sys.exit(3)
        case "take_memory":
            held = [bytearray(b"x" * MIB) for _ in range(2048)]
            return str(len(held))
    return "done"
