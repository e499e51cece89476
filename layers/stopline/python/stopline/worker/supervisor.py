"""Forks a child for every attempt and check, watches it, ends it, and leaves nothing of it alive.

It waits for the process, never for the end of a pipe: a grandchild can hold a pipe open for ever. The supervisor must
be single-threaded, because a fork copies locks that other threads hold and nobody in the child would ever release.
"""

import gc
import os
import selectors
import signal
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from stopline.errors import StoplineError
from stopline.logs import get_logger
from stopline.store.worker import RunSettings
from stopline.worker import processes
from stopline.worker.attempt import Ending
from stopline.worker.job import Tools
from stopline.worker.launching import Launcher
from stopline.worker.loading import KindCode
from stopline.worker.running import Running
from stopline.worker.task import Task

MIB = 1024 * 1024
_ROOM_BYTES = 16 * MIB
_EXIT_SECONDS = 1.0
"""What a child that has reported its end may take to exit."""
_POLL_SECONDS = 0.02
_frozen: set[str] = set()


class NotForkable(StoplineError):
    """This process must not fork, or cannot. Names the kind, the rule and the fix."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A task that is over, with everything that its record needs. `lease_ends` is in monotonic seconds."""

    task: Task
    ending: Ending
    seconds: float
    lease_ends: float


class Supervisor:
    """Runs the tasks of one kind in children, several at once. Use it as a context manager: leaving kills what runs.

    `queue_fd` gives the descriptor of the queue's connection, which leads nowhere in a child.
    """

    def __init__(self, code: KindCode, run: RunSettings, tools: Tools, queue_fd: Callable[[], int | None]) -> None:
        self._code = code
        self._run = run
        self._tools = tools
        self._running: list[Running] = []
        self._memory = run.memory_mb * MIB // run.children
        self._launcher = Launcher(run, tools, queue_fd, self._memory)

    def __enter__(self) -> "Supervisor":
        # A kind's import may have had the kernel reap children, which loses how they ended.
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._baseline = processes.children()
        self._selector = selectors.DefaultSelector()
        processes.become_subreaper(True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            for running in list(self._running):
                self._end(running)
            processes.end_orphans(self._baseline, ())
        finally:
            processes.become_subreaper(False)
            self._selector.close()

    def check(self) -> None:
        """Raises NotForkable when no child could be started. Call it before claiming: then nothing is charged."""
        self._single_threaded()
        needed = processes.data_bytes() + _ROOM_BYTES
        if processes.LINUX and self._memory < needed:
            raise NotForkable(
                f"kind {self._code.kind}: [run] memory_mb {self._run.memory_mb} shared by {self._run.children} "
                f"children leaves each {self._memory // MIB} MiB; a child needs {needed // MIB} MiB to start. "
                "Raise memory_mb or lower children"
            )
        self.prepare()

    def prepare(self) -> None:
        """Loads what the next children need, so that none has to, and takes it out of the collector's sight.

        A collection in a child would copy it page by page.
        """
        if self._tools.clients.warm() or self._code.kind not in _frozen:
            _frozen.add(self._code.kind)
            gc.freeze()

    @property
    def running(self) -> int:
        """How many tasks run now."""
        return len(self._running)

    @property
    def free(self) -> int:
        """How many more can be started now."""
        return self._run.children - len(self._running)

    def start(self, task: Task, lease_ends: float) -> None:
        """Starts a task. Raises NotForkable when it did not start."""
        self._single_threaded()
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # or the child would hold a copy of what is still unwritten
        try:
            others = [fd for other in self._running for fd in other.descriptors()]
            running = self._launcher.launch(task, lease_ends, others)
        except OSError as error:
            raise NotForkable(
                f"kind {self._code.kind}: no child can be started: {error}. "
                "The function is out of memory, processes or descriptors"
            ) from error
        self._running.append(running)
        self._watch(running)

    def wait(self, seconds: float) -> list[Ended]:
        """Watches until an attempt is over or `seconds` have passed. Returns those that are over, fully cleaned up."""
        until = time.monotonic() + seconds
        while self._running:
            now = time.monotonic()
            for running in self._running:
                self._judge(running, now)
            over = [running for running in self._running if running.over]
            if over:
                return [self._end(running) for running in over]
            if now >= until:
                break
            pause = min(until, *(running.ends for running in self._running)) - now
            if any(running.pidfd is None for running in self._running):
                pause = min(pause, _POLL_SECONDS)
            self._read(pause)
        return []

    def _single_threaded(self) -> None:
        threads = processes.threads()
        if threads != 1:
            raise NotForkable(
                f"kind {self._code.kind}: this process has {threads} threads "
                f"({', '.join(thread.name for thread in threading.enumerate())}) and may only fork with one. "
                "Start no thread while a handler.py of this poller is imported (inside run(job) is fine), "
                'or set isolation = "inline"'
            )

    def _watch(self, running: Running) -> None:
        running.channel.setblocking(False)
        self._selector.register(running.channel, selectors.EVENT_READ, (running, "channel"))
        for fd in running.outputs:
            os.set_blocking(fd, False)
            self._selector.register(fd, selectors.EVENT_READ, (running, "output"))
        if running.pidfd is not None:
            self._selector.register(running.pidfd, selectors.EVENT_READ, (running, "exit"))

    def _read(self, pause: float) -> None:
        for key, _ in self._selector.select(max(pause, 0.0)):
            running, what = key.data
            if what == "exit":
                running.over = True
                continue
            more = running.read_channel() if what == "channel" else running.read_output(key.fd)
            if not more:
                self._selector.unregister(key.fileobj)

    def _judge(self, running: Running, now: float) -> None:
        if running.pidfd is None and processes.has_exited(running.pid):
            running.over = True
        if running.final is not None:
            running.ends = min(running.ends, now + _EXIT_SECONDS)
        if now >= running.ends:
            running.over = True

    def _end(self, running: Running) -> Ended:
        """Kills what is left of an attempt, first of all, and then reads what it said."""
        seconds = time.monotonic() - running.started
        natural = processes.has_exited(running.pid)
        status = processes.end(running.pid)
        self._running.remove(running)
        others = {other.pid for other in self._running}
        orphans = processes.end_orphans(self._baseline | others, others)
        for fd in running.descriptors():
            if fd in self._selector.get_map():
                self._selector.unregister(fd)
        running.drain()
        running.close()
        self._tools.clients.want(running.task.ledger.services)
        if orphans:
            get_logger().warning("orphans_killed", kind=self._code.kind, job=running.task.job.id, processes=orphans)
        return Ended(running.task, running.ending(natural, status, seconds), seconds, running.lease_ends)
