"""One attempt or check in a child: its descriptors, what it has told so far, and how it turns out to have ended."""

import os
import signal
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from decimal import Decimal

from stopline.errors import InfrastructureError, LeaseLost
from stopline.errortext import clean
from stopline.failure import Failure
from stopline.logs import get_logger
from stopline.states import Outcome, StopReason
from stopline.worker.attempt import Ending
from stopline.worker.channel import Inbox, Message, ProtocolError, encode
from stopline.worker.ledger import MOST_USD
from stopline.worker.output import Stream
from stopline.worker.task import Task

_CHUNK = 65536
_AFTER_END_BYTES = 1024 * 1024


@dataclass(slots=True)
class Running:
    """A child and what is known of its task. `ends` and `started` are monotonic seconds."""

    task: Task
    pid: int
    pidfd: int | None
    channel: socket.socket
    outputs: dict[int, Stream]
    started: float
    ends: float
    lease_ends: float
    inbox: Inbox = field(default_factory=Inbox)
    final: Message | None = None
    broken: str | None = None
    over: bool = False

    def descriptors(self) -> list[int]:
        """What this attempt holds open in the supervisor."""
        return [self.channel.fileno(), *self.outputs, *([] if self.pidfd is None else [self.pidfd])]

    def read_channel(self) -> bool:
        """Takes what the child has sent and answers it. False when there was nothing more."""
        try:
            data = self.channel.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        if not data:
            return False
        try:
            for message in self.inbox.feed(data):
                self._take(message)
        except ProtocolError as error:
            self.broken = str(error)
            self.over = True
        return True

    def read_output(self, fd: int) -> bool:
        """Takes what the child has written to one of its streams. False when there was nothing more."""
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return False
        if data:
            self.outputs[fd].feed(data)
        return bool(data)

    def drain(self) -> None:
        """Reads what is left once the processes are dead. Bounded: a survivor elsewhere could write for ever."""
        self.over = True
        while self.broken is None and self.read_channel():
            pass
        for fd, stream in self.outputs.items():
            for _ in range(_AFTER_END_BYTES // _CHUNK):
                if not self.read_output(fd):
                    break
            stream.close()
            if stream.dropped:
                get_logger().warning(
                    "output_cut", kind=self.task.job.kind, job=self.task.job.id, dropped_bytes=stream.dropped
                )

    def close(self) -> None:
        """Closes the supervisor's ends."""
        self.channel.close()
        for fd in (*self.outputs, *([] if self.pidfd is None else [self.pidfd])):
            with suppress(OSError):
                os.close(fd)

    def ending(self, natural: bool, status: int | None, seconds: float) -> Ending:
        """How the attempt ended. `natural`: the child was dead before it was killed; `status` is its wait status."""
        if self.broken is not None:
            return _crash("ProtocolError", f"the child sent something that is not a message: {self.broken}")
        if self.final is not None:
            return _reported(self.final)
        if natural and status is None:
            return _crash(
                "ExitStatusUnknown", f"ended after {seconds:.1f} s without a result; its exit status was taken away"
            )
        if natural and status is not None and not self._rang(status, seconds):
            return self._died(status, seconds)
        return Ending(
            failure=Failure(
                Outcome.TIMEOUT, "Timeout", f"the {self.task.what} was killed at its timeout, after {seconds:.1f} s"
            )
        )

    def _rang(self, status: int, seconds: float) -> bool:
        """Whether the child's own alarm was quicker than the supervisor. A handler may have set an earlier one."""
        timeout = self.ends - self.started
        return os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM and seconds >= timeout

    def _died(self, status: int, seconds: float) -> Ending:
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            name = _signal_name(number)
            hint = "; the kernel sends it when memory runs out" if number == signal.SIGKILL else ""
            text = f"killed by {name} (signal {number}) after {seconds:.1f} s, without a result{hint}"
        else:
            name = f"ExitStatus{os.WEXITSTATUS(status)}"
            text = f"exited with status {os.WEXITSTATUS(status)} without a result after {seconds:.1f} s"
        tail = "\n".join(stream.tail for stream in self.outputs.values() if stream.tail)
        return _crash(name, f"{text}\nlast output:\n{tail}" if tail else text)

    def _take(self, message: Message) -> None:
        if self.final is not None:
            raise ProtocolError("a message came after the attempt's end")
        match message["type"]:
            case "done" | "failed":
                _reported(message)
                self.final = message
            case "cost":
                self.task.ledger.report_cost(*_cost(message))
            case "client":
                self.task.ledger.used_client(str(message.get("service")))
            case "note":
                self.task.ledger.note(str(message.get("text")))
            case _ if self.over:
                pass  # the child died before it could hear an answer: what it asked for has not begun
            case _:
                self._answer(message)

    def _answer(self, message: Message) -> None:
        answer: Message = {"type": "ok"}
        try:
            match message["type"]:
                case "effect":
                    self.task.ledger.start_effect()
                case "step":
                    answer["status"] = self.task.ledger.count_step()
                case "checkpoint":
                    self.task.ledger.save_checkpoint(str(message.get("text")))
                case other:
                    raise ProtocolError(f"a message has the unknown type {other[:40]!r}")
        except ProtocolError:
            raise
        except LeaseLost as error:
            answer = {"type": "error", "error": "lease_lost", "text": clean(str(error))}
        except InfrastructureError as error:
            answer = {"type": "error", "error": "infrastructure", "text": clean(str(error))}
        except Exception as error:
            answer = {"type": "error", "error": "refused", "text": clean(f"{type(error).__name__}: {error}")}
        try:
            self.channel.send(encode({**answer, "number": message.get("number")}))
        except BlockingIOError:
            raise ProtocolError("the child does not read its answers") from None
        except OSError:
            pass  # the child is dead; its wait status tells the rest


def _reported(message: Message) -> Ending:
    """What a child's last message says. Raises ProtocolError when it is not of the form."""
    try:
        if message["type"] == "done":
            result = message["result"]
            if result is not None and not isinstance(result, str):
                raise TypeError("its result is not a text")
            return Ending(result=result)
        reason = message["stop_reason"]
        failure = Failure(
            Outcome(message["outcome"]),
            str(message["error_class"]),
            str(message["error"]),
            retry_after=None if message["retry_after"] is None else float(message["retry_after"]),
            stop_reason=None if reason is None else StopReason(reason),
        )
        return Ending(failure=failure, queue_lost=bool(message["queue_lost"]))
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ProtocolError(f"the attempt's end is not of the form: {type(error).__name__}: {error}") from None


def _cost(message: Message) -> tuple[Decimal, int]:
    try:
        usd, calls = Decimal(message["usd"]), int(message["calls"])
    except (KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise ProtocolError(f"a cost is not of the form: {type(error).__name__}") from None
    if not usd.is_finite() or not 0 <= usd <= MOST_USD:
        raise ProtocolError(f"a cost is not an amount from 0 to {MOST_USD}")
    return usd, calls


def _crash(error_class: str, error: str) -> Ending:
    return Ending(failure=Failure(Outcome.CRASHED, error_class, error))


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"SIG{number}"
