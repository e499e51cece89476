"""How a child and its supervisor talk: JSON objects, each after its length in four bytes, over one socket pair.

A child's bytes are not trusted: anything that is not a message of bounded size is a `ProtocolError`, which the
supervisor records as a crash and never as a success.
"""

import json
import socket
import struct
from typing import Any

from stopline.errors import StoplineError

MESSAGE_BYTES = 512 * 1024
"""Room for the largest result or checkpoint after its escaping as a JSON string."""

_LENGTH = struct.Struct("!I")

Message = dict[str, Any]


class ProtocolError(StoplineError):
    """The other end sent something that is not a message."""


def encode(message: Message) -> bytes:
    """One message as bytes. Raises ProtocolError when it is too long to be accepted."""
    body = json.dumps(message, allow_nan=False, separators=(",", ":")).encode("ascii")
    if len(body) > MESSAGE_BYTES:
        raise ProtocolError(f"a message of {len(body)} bytes is over the limit of {MESSAGE_BYTES}")
    return _LENGTH.pack(len(body)) + body


class Inbox:
    """Puts messages together from the pieces in which bytes arrive."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> list[Message]:
        """The messages that `data` completes. Raises ProtocolError at the first thing that is none."""
        self._bytes += data
        messages = []
        while len(self._bytes) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes)
            if length > MESSAGE_BYTES:
                raise ProtocolError(f"a message says that it is {length} bytes long; the limit is {MESSAGE_BYTES}")
            end = _LENGTH.size + length
            if len(self._bytes) < end:
                break
            messages.append(_decode(bytes(self._bytes[_LENGTH.size : end])))
            del self._bytes[:end]
        return messages


class Channel:
    """The child's end: sends, and waits for the one answer to what it asked."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._inbox = Inbox()
        self._asked = 0

    def tell(self, message: Message) -> None:
        """Sends a message that has no answer."""
        self._socket.sendall(encode(message))

    def ask(self, message: Message) -> Message:
        """Sends a message and waits for its answer. Raises ProtocolError when the supervisor has gone.

        Questions are numbered: a signal's exception may have ended the wait for the answer to an earlier one.
        """
        self._asked += 1
        self.tell({**message, "number": self._asked})
        while True:
            data = self._socket.recv(65536)
            if not data:
                raise ProtocolError("the supervisor closed the channel")
            for answer in self._inbox.feed(data):
                if answer.get("number") == self._asked:
                    return answer


def _decode(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"a message is not JSON: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ProtocolError("a message is not an object with a type")
    return message
