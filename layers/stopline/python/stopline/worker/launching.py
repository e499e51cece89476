"""Makes the child of an attempt or a check: its channel, its pipes, the fork."""

import os
import socket
import time
from collections.abc import Callable, Collection
from contextlib import ExitStack
from dataclasses import dataclass

from stopline.logs import get_logger
from stopline.store.worker import RunSettings
from stopline.worker import child
from stopline.worker.job import Tools
from stopline.worker.output import Stream
from stopline.worker.running import Running
from stopline.worker.task import Task


@dataclass(frozen=True, slots=True)
class Launcher:
    """Starts the children of one kind. `queue_fd` gives the descriptor of the queue's connection."""

    run: RunSettings
    tools: Tools
    queue_fd: Callable[[], int | None]
    memory_bytes: int

    def launch(self, task: Task, lease_ends: float, others: Collection[int]) -> Running:
        """Forks. `others` are descriptors that the child must not keep. Raises OSError, with nothing left open."""
        with ExitStack() as theirs, ExitStack() as ours:
            channel, channel_end = socket.socketpair()
            ours.callback(channel.close)
            theirs.callback(channel_end.close)
            ends = []
            for _ in range(2):
                fd, fd_end = os.pipe()
                ours.callback(os.close, fd)
                theirs.callback(os.close, fd_end)
                ends.append((fd, fd_end))
            (out, out_end), (err, err_end) = ends
            queue_fd = self.queue_fd()
            started = time.monotonic()
            start = child.Start(
                task=task,
                tools=self.tools,
                ends=started + self.run.timeout_s,
                seconds=self.run.timeout_s,
                memory_bytes=self.memory_bytes,
                parent=os.getpid(),
                channel=channel_end,
                stdout=out_end,
                stderr=err_end,
                close=(channel.fileno(), out, err, *others),
                silence=() if queue_fd is None else (queue_fd,),
            )
            pid = os.fork()
            if pid == 0:
                child.main(start)
            ours.pop_all()
        return Running(
            task=task,
            pid=pid,
            pidfd=_pidfd(pid),
            channel=channel,
            outputs={out: _stream(task, "stdout"), err: _stream(task, "stderr")},
            started=started,
            ends=start.ends,
            lease_ends=lease_ends,
        )


def _stream(task: Task, name: str) -> Stream:
    log = get_logger()
    fields = {**task.told, "stream": name}
    return Stream(lambda text: log.info("output", **fields, text=text))


def _pidfd(pid: int) -> int | None:
    """A descriptor that tells of the child's end; without one the child is asked for at short intervals."""
    if not hasattr(os, "pidfd_open"):
        return None
    try:
        return os.pidfd_open(pid)
    except OSError:
        return None
