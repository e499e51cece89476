"""Messages between a child and its supervisor: whole or refused, whatever the bytes are."""

import os
import socket
import struct

import pytest

from stopline.worker.channel import MESSAGE_BYTES, Channel, Inbox, ProtocolError, encode


def test_messages_come_out_whole_however_their_bytes_arrive() -> None:
    sent = [{"type": "cost", "usd": "0.2"}, {"type": "note", "text": "half an emoji \ud83d and ü"}]
    data = b"".join(encode(message) for message in sent)
    inbox, seen = Inbox(), []
    for byte in data:
        seen += inbox.feed(bytes([byte]))
    assert seen == sent


def test_a_result_of_the_largest_size_fits_whatever_its_characters_are() -> None:
    for text in ('"' * 65536, "\\" * 65536, "ü" * 32768, "語" * 21845, "😀" * 16384):
        assert Inbox().feed(encode({"type": "done", "result": text})) == [{"type": "done", "result": text}]


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (struct.pack("!I", MESSAGE_BYTES + 1), "the limit is"),
        (b"HTTP/1.1 200 OK\r\n\r\n", "the limit is"),
        (struct.pack("!I", 3) + b"{,}", "not JSON"),
        (struct.pack("!I", 2) + b"[]", "not an object with a type"),
        (struct.pack("!I", 2) + b"{}", "not an object with a type"),
        (struct.pack("!I", 10) + b'{"type":1}', "not an object with a type"),
        (struct.pack("!I", 2) + b"\xff\xfe", "not JSON"),
        (struct.pack("!I", 100_000) + b"[" * 100_000, "not JSON"),
    ],
)
def test_bytes_that_are_no_message_are_refused_with_the_rule(data: bytes, rule: str) -> None:
    with pytest.raises(ProtocolError, match=rule):
        Inbox().feed(data)


def test_a_message_that_is_too_long_is_not_sent() -> None:
    with pytest.raises(ProtocolError, match="over the limit"):
        encode({"type": "note", "text": "x" * MESSAGE_BYTES})


def test_the_child_is_told_when_its_supervisor_has_gone() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        os.write(theirs.fileno(), encode({"type": "ok", "number": 1}))
        channel = Channel(ours)
        assert channel.ask({"type": "effect"}) == {"type": "ok", "number": 1}
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(ProtocolError, match="closed the channel"):
            channel.ask({"type": "effect"})
