"""Captured output: lines as they come, bounded, with the last words kept."""

from stopline.worker.output import LINE_BYTES, OUTPUT_BYTES, TAIL_BYTES, Stream


def test_lines_come_out_one_by_one_without_empty_ones_and_the_last_at_the_close() -> None:
    lines: list[str] = []
    stream = Stream(lines.append)
    for piece in (b"one\ntw", b"o\n\nthr", b"ee"):
        stream.feed(piece)
    assert lines == ["one", "two"]
    stream.close()
    assert lines == ["one", "two", "three"]


def test_a_line_without_an_end_is_cut_into_bounded_pieces_at_once() -> None:
    lines: list[str] = []
    Stream(lines.append).feed(b"x" * (3 * LINE_BYTES))
    assert [len(line) for line in lines] == [LINE_BYTES, LINE_BYTES]


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
