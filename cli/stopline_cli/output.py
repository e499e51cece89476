"""What commands print: JSON for programs, tables and lines for people. Nothing shown is ever read as markup."""

import json
import re
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_WIDE = 160


def plain(value: object, style: str = "") -> Text:
    """A value as text that a terminal shows and does not obey: control and direction characters become visible."""
    text = "" if value is None else str(value)
    return Text(_CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text), style=style)


def console() -> Console:
    """Standard output, as wide as the terminal or, where there is none, wide enough not to fold a table."""
    out = Console(highlight=False)
    return out if out.is_terminal else Console(highlight=False, width=_WIDE)


def print_json(value: object) -> None:
    """One JSON document on one line, at once. Whatever JSON has no word for becomes text."""
    # Flushed: whoever reads a long command's lines through a pipe wants each when it is true.
    print(json.dumps(value, default=str, ensure_ascii=True), flush=True)


def print_lines(lines: Iterable[object]) -> None:
    """Lines of text, folded at the terminal's width, at once."""
    out = console()
    for line in lines:
        out.print(plain(line), soft_wrap=not out.is_terminal)
    out.file.flush()


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """A table under a title; `none` in place of a table without rows."""
    out = console()
    listed = list(rows)
    out.print(plain(title, "bold"))
    if not listed:
        out.print(plain("  none"))
        return
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in columns:
        table.add_column(plain(column), overflow="fold", no_wrap=column != columns[-1])
    for row in listed:
        table.add_row(*(plain(value) for value in row))
    out.print(table)


def print_error(message: str) -> None:
    """An error on standard error."""
    Console(stderr=True, highlight=False, soft_wrap=True).print(plain(f"error: {message}", "red"))
