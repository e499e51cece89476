"""Times and amounts as people say them."""

import pytest

from stopline_cli.words import away, failure, span, usd


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"), (0.3, "0.3 s"), (1, "1 s"), (59.6, "1 min"), (90, "1 min 30 s"), (3600, "1 h"), (3605, "1 h"),
        (86399, "23 h 59 min"), (86400, "1 d"), (90000, "1 d 1 h"), (-90, "-1 min 30 s"),
    ],
)  # fmt: skip
def test_a_span_names_its_two_largest_units(seconds: float, words: str) -> None:
    assert span(seconds) == words


@pytest.mark.parametrize(
    ("amount", "words"),
    [(1, "$1.00"), ("0.200000", "$0.20"), (0.0012, "$0.0012"), (0, "$0.00"), (12.3456789, "$12.345679")],
)
def test_dollars_have_cents_and_more_places_only_where_there_are_any(amount: float | str, words: str) -> None:
    assert usd(amount) == words


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("ValueError", "ValueError: bad\nat x", "ValueError: bad\nat x"),
        ("SIGKILL", "killed", "SIGKILL: killed"),
        ("SIGKILL", None, "SIGKILL"),
        (None, None, ""),
    ],
)
def test_an_error_has_its_class_in_front_once(name: str | None, text: str | None, words: str) -> None:
    assert failure(name, text) == words


def test_a_time_tells_how_far_away_it_is() -> None:
    now = "2026-03-01T12:00:00Z"
    assert away("2026-03-01T12:00:00.2Z", now) == "now"
    assert away("2026-03-01T12:10:00Z", now) == "in 10 min"
    assert away("2026-03-01T13:00:00+02:00", now) == "1 h ago"
