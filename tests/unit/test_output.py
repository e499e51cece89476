"""What commands print shows values and never obeys them."""

import json

import pytest

from stopline_cli.output import plain, print_json, print_table


def test_control_characters_and_direction_marks_become_visible() -> None:
    assert plain("a\x1b[31mred\x07\u202egnp").plain == "a\\x1b[31mred\\x07\\x202egnp"


def test_markup_in_a_value_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Jobs", ("key",), [("[bold]x[/bold] [link=file:///etc]y[/link]",)])
    assert "[bold]x[/bold] [link=file:///etc]y[/link]" in capsys.readouterr().out


def test_a_table_without_rows_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    print_table("Jobs", ("id",), [])
    assert capsys.readouterr().out.split() == ["Jobs", "none"]


def test_json_is_one_line_of_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    print_json({"key": "é\n\u202e"})
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert out.isascii()
    assert json.loads(out) == {"key": "é\n\u202e"}
