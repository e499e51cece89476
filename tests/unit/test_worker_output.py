"""Captured output: lines as they come, bounded, with the last words kept."""

from stopline.worker.output import LINE_CHARS, OUTPUT_BYTES, TAIL_BYTES, Stream


def test_lines_come_out_one_by_one_without_empty_ones_and_the_last_at_the_close() -> None:
    lines: list[str] = []
    stream = Stream(lines.append)
    for piece in (b"one\ntw", b"o\n\nthr", b"ee"):
        stream.feed(piece)
    assert lines == ["one", "two"]
    stream.close()
    assert lines == ["one", "two", "three"]


def test_a_long_line_is_passed_on_in_bounded_pieces_that_cut_no_character() -> None:
    lines: list[str] = []
    stream = Stream(lines.append)
    stream.feed("ü".encode() * 3 * LINE_CHARS + b"\n")
    assert lines == ["ü" * LINE_CHARS] * 3


def test_a_secret_that_lies_across_two_pieces_of_a_line_is_in_neither() -> None:
    """CO-10: the line is cleaned before it is cut."""
    lines: list[str] = []
    stream = Stream(lines.append)
    stream.feed(b"x" * (LINE_CHARS - 6) + b" password=")
    stream.feed(b"Sup3rSecret")
    stream.close()
    assert "".join(lines) == "x" * (LINE_CHARS - 6) + " password=[redacted]"


def test_a_key_that_is_printed_over_several_lines_is_in_none() -> None:
    lines: list[str] = []
    stream = Stream(lines.append)
    stream.feed(
        b"before\n-----BEGIN RSA PRIVATE KEY-----\nMIIEvQIBADAN\nBgkqhkiG9w0B\n-----END RSA PRIVATE KEY-----\nafter\n"
    )
    assert lines == ["before", "[redacted]", "after"]


def test_the_last_words_of_a_stream_of_any_length_are_kept() -> None:
    for length in (10, TAIL_BYTES, TAIL_BYTES + 1, 2 * TAIL_BYTES, 3 * TAIL_BYTES):
        stream = Stream(lambda line: None)
        stream.feed(b"y" * length + b" the last words")
        assert stream.tail.endswith("y the last words")
        assert len(stream.tail) >= min(length, TAIL_BYTES)


def test_a_secret_at_the_beginning_of_the_last_words_is_not_kept_in_part() -> None:
    """CO-10: what stands before the kept bytes may be what told that they are a password."""
    stream = Stream(lambda line: None)
    stream.feed(b"password=" + b"Sup3rSecret" * 300 + b" " + b"y" * TAIL_BYTES)
    assert "Sup3rSecret" not in stream.tail
    assert stream.tail.endswith("yyy")


def test_what_is_beyond_the_bound_is_counted_and_its_end_is_kept() -> None:
    lines: list[str] = []
    stream = Stream(lines.append)
    for _ in range(100):
        stream.feed(b"y" * 65536)
    stream.feed(b"the last words\n")
    stream.close()
    assert sum(map(len, lines)) == OUTPUT_BYTES
    assert stream.dropped == 100 * 65536 + len(b"the last words\n") - OUTPUT_BYTES
    assert stream.tail.endswith("the last words")
    assert len(stream.tail) <= TAIL_BYTES


def test_bytes_that_are_no_text_are_shown() -> None:
    lines: list[str] = []
    Stream(lines.append).feed(b"caf\xe9 \xf0\x9f\x98\x80\n")
    assert lines == ["caf\\xe9 😀"]
