"""Forks a child for every attempt, watches it, ends it, and leaves nothing of it alive.

It waits for the process, never for the end of a pipe: a grandchild can hold a pipe open for ever. The supervisor must
be single-threaded, because a fork copies locks that other threads hold and nobody in the child would ever release.
"""

import gc
import os
import selectors
import socket
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from stopline.errors import StoplineError
from stopline.logs import get_logger
from stopline.store.worker import ClaimedJob, RunSettings, WorkerStore
from stopline.worker import child, processes
from stopline.worker.attempt import Ending
from stopline.worker.job import Tools
from stopline.worker.ledger import StoreLedger
from stopline.worker.loading import KindCode
from stopline.worker.output import Stream
from stopline.worker.running import Running

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
    """An attempt that is over, with everything that its finish needs. `lease_ends` is in monotonic seconds."""

    claimed: ClaimedJob
    ledger: StoreLedger
    ending: Ending
    seconds: float
    lease_ends: float


class Supervisor:
    """Runs the attempts of one kind in children, several at once. Use it as a context manager: leaving kills what runs.

    `queue_fd` gives the descriptor of the queue's connection, which leads nowhere in a child.
    """

    def __init__(
        self, code: KindCode, run: RunSettings, store: WorkerStore, tools: Tools, queue_fd: Callable[[], int | None]
    ) -> None:
        self._code = code
        self._run = run
        self._store = store
        self._tools = tools
        self._queue_fd = queue_fd
        self._running: list[Running] = []
        self._services: set[str] = set()
        self._memory = run.memory_mb * MIB // run.children

    def __enter__(self) -> "Supervisor":
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
        self._freeze(self._code.kind)

    @property
    def running(self) -> int:
        """How many attempts run now."""
        return len(self._running)

    @property
    def free(self) -> int:
        """How many more can be started now."""
        return self._run.children - len(self._running)

    def start(self, claimed: ClaimedJob, lease_ends: float) -> None:
        """Starts an attempt. Raises NotForkable when it did not start."""
        self._single_threaded()
        for service in sorted(self._services):
            if self._tools.clients.warm(service):
                self._freeze(service)
        for stream in (sys.stdout, sys.stderr):
            stream.flush()  # or the child would hold a copy of what is still unwritten
        try:
            running = self._launch(claimed, lease_ends)
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

    def _launch(self, claimed: ClaimedJob, lease_ends: float) -> Running:
        with ExitStack() as theirs, ExitStack() as ours:
            channel, channel_end = socket.socketpair()
            ours.callback(channel.close)
            theirs.callback(channel_end.close)
            pipes = []
            for _ in range(2):
                fd, fd_end = os.pipe()
                ours.callback(os.close, fd)
                theirs.callback(os.close, fd_end)
                pipes.append((fd, fd_end))
            (out, out_end), (err, err_end) = pipes
            started = time.monotonic()
            ends = started + self._run.timeout_s
            pid = self._fork(claimed, ends, channel_end, (out_end, err_end), [channel.fileno(), out, err])
            ours.pop_all()
        return Running(
            claimed=claimed,
            ledger=StoreLedger(self._store, claimed.id, claimed.fence),
            pid=pid,
            pidfd=_pidfd(pid),
            channel=channel,
            outputs={out: self._stream(claimed, "stdout"), err: self._stream(claimed, "stderr")},
            started=started,
            ends=ends,
            lease_ends=lease_ends,
        )

    def _fork(
        self, claimed: ClaimedJob, ends: float, theirs: socket.socket, outputs: tuple[int, int], ours: list[int]
    ) -> int:
        others = [fd for running in self._running for fd in running.descriptors()]
        queue_fd = self._queue_fd()
        start = child.Start(
            code=self._code,
            claimed=claimed,
            tools=self._tools,
            idempotent=self._run.idempotent,
            ends=ends,
            seconds=self._run.timeout_s,
            memory_bytes=self._memory,
            parent=os.getpid(),
            channel=theirs,
            stdout=outputs[0],
            stderr=outputs[1],
            close=(*ours, *others),
            silence=() if queue_fd is None else (queue_fd,),
        )
        pid = os.fork()
        if pid == 0:
            child.main(start)
        return pid

    def _single_threaded(self) -> None:
        threads = processes.threads()
        if threads != 1:
            raise NotForkable(
                f"kind {self._code.kind}: this process has {threads} threads and may only fork with one. "
                'Start no thread while handler.py is imported (inside run(job) is fine), or set isolation = "inline"'
            )

    def _freeze(self, what: str) -> None:
        """Takes what exists now out of the collector's sight: a collection in a child would copy it, page by page."""
        if what not in _frozen:
            _frozen.add(what)
            gc.freeze()

    def _stream(self, claimed: ClaimedJob, name: str) -> Stream:
        log = get_logger()
        fields: dict[str, Any] = {"kind": claimed.kind, "job": claimed.id, "attempt": claimed.attempt, "stream": name}
        return Stream(lambda text: log.info("output", **fields, text=text))

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
        self._services |= running.ledger.services
        if orphans:
            get_logger().warning("orphans_killed", kind=self._code.kind, job=running.claimed.id, processes=orphans)
        return Ended(
            running.claimed, running.ledger, running.ending(natural, status, seconds), seconds, running.lease_ends
        )


def _pidfd(pid: int) -> int | None:
    """A descriptor that tells of the child's end; without one the child is asked for at short intervals."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
