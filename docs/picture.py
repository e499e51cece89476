"""`make picture`: draws what `make demo` prints as docs/demo.svg, so that the README shows a real run."""

import io
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

DOCS = Path(__file__).parent
WIDTH = 110
_SHOWN = re.compile(
    r"^What came of it$.*?(?=\n^Attempts in the database)|^Money$.*?(?=\n^At most, known)"
    r"|^The outage, ridden out.*?^All \d+ jobs[^\n]*$",
    re.M | re.S,
)
_FONT = re.compile(r"\s*@font-face \{.*?\}", re.S)


def main() -> None:
    """Run the demo and draw the parts that say what came of it. Exits with the demo's status if it fails."""
    done = subprocess.run(
        [sys.executable, "-m", "stopline_cli", "demo"], capture_output=True, text=True, check=False, cwd=DOCS.parent
    )
    if done.returncode != 0:
        print(done.stdout, done.stderr, sep="\n", file=sys.stderr)
        sys.exit(done.returncode)
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    for part in _SHOWN.findall(done.stdout):
        console.print(_coloured(part), no_wrap=True, overflow="ellipsis", crop=True)
    drawing = console.export_svg(title="make demo")
    # A picture that fetches fonts when it is shown would tell somebody who looks at it.
    (DOCS / "demo.svg").write_text(_FONT.sub("", drawing), encoding="utf-8")


def _coloured(part: str) -> Text:
    text = Text(part)
    text.highlight_regex(r"(?m)^\S.*$", "bold")
    text.highlight_regex(r"\babandoned\b|\b\w+_exhausted\b|permanent_failure|deadline_passed", "red")
    text.highlight_regex(r"\buncertain\b", "yellow")
    text.highlight_regex(r"\bsucceeded\b", "green")
    return text


if __name__ == "__main__":
    main()
