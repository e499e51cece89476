"""What happens in the process of an attempt or a check, from the fork to its end by `os._exit`.

This is fault isolation, not a security boundary: a handler's faults stay in its process, a hostile handler's need not.
"""

import faulthandler
import logging
import os
import resource
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from stopline.errors import InfrastructureError, LeaseLost, Refused
from stopline.failure import Failure
from stopline.worker import processes
from stopline.worker.attempt import Ending
from stopline.worker.channel import Channel, Message
from stopline.worker.job import Job, Tools
from stopline.worker.task import Task

FAILED_START = 70
"""Exit status of a child that ended before it could report anything (EX_SOFTWARE)."""
ALARM_GRACE_SECONDS = 2.0
_ERRORS: dict[str, type[Exception]] = {"lease_lost": LeaseLost, "infrastructure": InfrastructureError}
_DEFAULT_SIGNALS = (
    signal.SIGCHLD,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGALRM,
    signal.SIGHUP,
    signal.SIGUSR1,
    signal.SIGUSR2,
)


@dataclass(frozen=True, slots=True)
class Start:
    """Everything that a child needs. `silence` are descriptors that must lead nowhere in it: the queue's connection."""

    task: Task
    tools: Tools
    ends: float
    seconds: float
    memory_bytes: int
    parent: int
    channel: socket.socket
    stdout: int
    stderr: int
    close: Collection[int]
    silence: Collection[int]


class ChannelLedger:
    """The job's line to the queue, through the supervisor."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._finished = False

    def start_effect(self) -> None:
        self._ask({"type": "effect"})

    def count_step(self) -> str:
        return str(self._ask({"type": "step"}).get("status"))

    def save_checkpoint(self, text: str) -> None:
        self._ask({"type": "checkpoint", "text": text})

    def report_cost(self, usd: Decimal, calls: int) -> None:
        self._tell({"type": "cost", "usd": str(usd), "calls": calls})

    def used_client(self, service: str) -> None:
        self._tell({"type": "client", "service": service[:100]})

    def note(self, text: str) -> None:
        self._tell({"type": "note", "text": text[:500]})

    def finish(self, ending: Ending) -> None:
        """Reports how the attempt ended. Nothing follows it, not even from a thread that the handler left running."""
        with self._lock:
            self._channel.tell(_final(ending))
            self._finished = True

    def _ask(self, message: Message) -> Message:
        with self._lock:
            self._check_open()
            answer = self._channel.ask(message)
        if answer["type"] == "ok":
            return answer
        raise _ERRORS.get(str(answer.get("error")), Refused)(str(answer.get("text")))

    def _tell(self, message: Message) -> None:
        with self._lock:
            self._check_open()
            self._channel.tell(message)

    def _check_open(self) -> None:
        if self._finished:
            raise Refused("the handler has returned: the job can no longer be used")
        if os.getpid() != self._pid:
            raise Refused(
                "the job belongs to the process that the handler was called in: do not use it in a process forked there"
            )


def main(start: Start) -> NoReturn:
    """Does the task and ends the process: a child that returned would take over the runtime."""
    pid = os.getpid()
    try:
        _guard(start)
        _streams(start)
        _limit_memory(start.memory_bytes)
        ledger = ChannelLedger(Channel(start.channel))
        ending = start.task.call(Job(start.task.job, ledger, start.tools, start.ends))
        # A process that the handler forked and let return here must not speak for this one.
        if os.getpid() == pid:
            _lift_memory_limit()
            for stream in (sys.stdout, sys.stderr):
                with suppress(Exception):
                    stream.flush()
            ledger.finish(ending)
            os._exit(0)
    except BaseException:
        with suppress(BaseException):
            traceback.print_exc()
            sys.stderr.flush()
    finally:
        os._exit(FAILED_START)


def _guard(start: Start) -> None:
    processes.die_with_parent(start.parent)
    os.setsid()
    signal.set_wakeup_fd(-1)
    for number in _DEFAULT_SIGNALS:
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    # A backstop: the supervisor kills at the timeout, unless it is busy waiting for the database.
    signal.setitimer(signal.ITIMER_REAL, start.seconds + ALARM_GRACE_SECONDS)
    nowhere = os.open(os.devnull, os.O_RDWR)
    # The descriptor stays taken: were it closed, the driver's object could write into whatever file got its number.
    for fd in start.silence:
        os.dup2(nowhere, fd, inheritable=False)
    os.dup2(nowhere, 0)
    os.dup2(start.stdout, 1)
    os.dup2(start.stderr, 2)
    for fd in (nowhere, start.stdout, start.stderr, *start.close):
        if fd > 2:
            with suppress(OSError):
                os.close(fd)
    with suppress(OSError), open("/proc/self/oom_score_adj", "w", encoding="ascii") as score:
        score.write("1000")
    faulthandler.enable(2)


def _streams(start: Start) -> None:
    """Python's streams and loggers write to the captured descriptors: lines of several processes would tear."""
    before = {id(sys.stdout): 1, id(sys.__stdout__): 1, id(sys.stderr): 2, id(sys.__stderr__): 2}
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout, sys.stderr = (
        open(fd, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False)  # noqa: SIM115
        for fd in (1, 2)
    )
    now = {1: sys.stdout, 2: sys.stderr}
    root = logging.getLogger()
    root.handlers[:] = [logging.StreamHandler(sys.stderr)]
    for logger in list(logging.root.manager.loggerDict.values()):
        for handler in getattr(logger, "handlers", ()):
            if isinstance(handler, logging.StreamHandler) and id(handler.stream) in before:
                handler.setStream(now[before[id(handler.stream)]])


def _limit_memory(limit: int) -> None:
    """Only the soft limit: it is lifted again to report that it was met."""
    if not processes.LINUX:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
    resource.setrlimit(resource.RLIMIT_DATA, (limit if hard == resource.RLIM_INFINITY else min(limit, hard), hard))


def _lift_memory_limit() -> None:
    if processes.LINUX:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        resource.setrlimit(resource.RLIMIT_DATA, (hard, hard))


def _final(ending: Ending) -> Message:
    failure = ending.failure
    if failure is None:
        return {"type": "done", "result": ending.result}
    return {"type": "failed", "queue_lost": ending.queue_lost, **as_message(failure)}


def as_message(failure: Failure) -> Message:
    """A failure as plain JSON values."""
    return {
        "outcome": str(failure.outcome),
        "error_class": failure.error_class,
        "error": failure.error,
        "retry_after": failure.retry_after,
        "stop_reason": None if failure.stop_reason is None else str(failure.stop_reason),
    }
