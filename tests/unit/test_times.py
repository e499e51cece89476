"""Times that people give, as moments with a zone or spans from the database's time."""

from datetime import UTC, datetime

import pytest

from stopline_cli.errors import CommandError
from stopline_cli.times import given_moment

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "direction", "moment"),
    [
        ("90m", 1, datetime(2026, 3, 1, 13, 30, tzinfo=UTC)),
        ("24h", -1, datetime(2026, 2, 28, 12, tzinfo=UTC)),
        ("2026-03-02T01:00:00+02:00", 1, datetime(2026, 3, 1, 23, tzinfo=UTC)),
        ("2026-03-02T01:00:00Z", -1, datetime(2026, 3, 2, 1, tzinfo=UTC)),
    ],
)
def test_a_span_counts_from_now_and_a_moment_is_brought_to_utc(text: str, direction: int, moment: datetime) -> None:
    assert given_moment("--since", text, NOW, direction) == moment


@pytest.mark.parametrize(
    "text", ["", "soon", "90", "2026-03-02", "2026-03-02T01:00:00", "999999999d", "0001-01-01T00:00:00+02:00"]
)
def test_anything_else_is_refused_by_the_options_name_with_an_example(text: str) -> None:
    with pytest.raises(CommandError, match=r"^--since: .* Fix: write 2026-01-31T12:00:00Z, or a span such as"):
        given_moment("--since", text, NOW, -1)
