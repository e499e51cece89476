"""Outlives its own timeout by stopping its supervisor."""

import os
import signal
import time
from pathlib import Path

from stopline import Job


def run(job: Job) -> str:
    if not job.payload.get("hang"):
        return "done"
    Path(job.payload["pid_file"]).write_text(str(os.getpid()))
    signal.setitimer(signal.ITIMER_REAL, 0)
    os.kill(os.getppid(), signal.SIGSTOP)
    while True:
        time.sleep(60)
