import random
from datetime import timedelta

import pytest

from stopline.durations import format_duration, in_seconds, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("15m", 900), ("6h", 21_600), ("7d", 604_800), ("1h30m", 5_400), ("500ms", 0.5), ("2m500ms", 120.5)],
)
def test_a_duration_is_read_with_its_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "30", "s", "-3s", "1.5h", "30 s", "30S", "5m1h", "1w", "٣s", "30s\n", "s30"])
def test_anything_else_is_refused_with_the_form_that_is_wanted(text: str) -> None:
    with pytest.raises(ValueError, match='must be a duration such as "30s"'):
        parse_duration(text)


def test_a_bare_number_is_told_how_to_name_its_unit() -> None:
    with pytest.raises(ValueError, match='write "30s" for seconds'):
        parse_duration(30)


@pytest.mark.parametrize("value", [True, None, ["1s"]])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(ValueError, match="in quotes"):
        parse_duration(value)


def test_a_duration_beyond_what_python_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="too long"):
        parse_duration("999999999d23h999999999s")


def test_what_is_written_is_read_back() -> None:
    chance = random.Random(1)
    for milliseconds in [0, 1, 999, *(chance.randrange(10 ** chance.randint(1, 13)) for _ in range(500))]:
        duration = timedelta(milliseconds=milliseconds)
        assert parse_duration(format_duration(duration)) == duration


def test_whole_seconds_are_integers_in_a_row() -> None:
    assert repr(in_seconds(timedelta(minutes=1))) == "60"
    assert repr(in_seconds(timedelta(milliseconds=1500))) == "1.5"
