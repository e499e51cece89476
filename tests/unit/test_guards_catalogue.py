"""`make guards` removes what is there: the catalogue keeps step with the SQL."""

from pathlib import Path

import pytest

from tests.guards.catalogue import GUARDS, Guard

CHECKOUT = Path(__file__).parents[2]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_guard_still_stands_where_the_catalogue_says(guard: Guard) -> None:
    text = (CHECKOUT / "sql" / guard.file).read_text()
    assert guard.after in text
    assert guard.old in text[text.index(guard.after) :]


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_the_tests_of_a_guard_exist(guard: Guard) -> None:
    assert guard.tests
    for test in guard.tests:
        file, _, name = test.partition("::")
        assert f"def {name}" in (CHECKOUT / "tests" / "sql" / file).read_text()
