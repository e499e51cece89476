"""Becomes the emulator: `python launch.py CGROUP_FILE|- PROGRAM ARGUMENT...`.

Joined to the memory cgroup first, with Lambda's limit of descriptors, and killed by the kernel when the test process
ends, however that ends.
"""

import ctypes
import os
import resource
import signal
import sys

_PR_SET_PDEATHSIG = 1
DESCRIPTORS = 1024
"""Lambda quotas: file descriptors of a function."""


def main() -> None:
    """Replaces this process. The death signal stays with a process when it executes another program."""
    group, program, *arguments = sys.argv[1:]
    if group != "-":
        with open(group, "w", encoding="ascii") as processes:
            processes.write(str(os.getpid()))
    resource.setrlimit(resource.RLIMIT_NOFILE, (DESCRIPTORS, DESCRIPTORS))
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
