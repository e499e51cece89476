"""Which error becomes which class of failure, as Markdown, made from the table so that it cannot differ from it."""

from collections.abc import Iterator, Mapping
from itertools import groupby

from stopline.known_errors import AWS_CODES, STATUSES, TABLE, Verdict

CLASSES: Mapping[Verdict, str] = {
    Verdict.RETRY: "`transient`",
    Verdict.NEVER: "`permanent`",
    Verdict.LOST: "`lost`",
    Verdict.STATUS: "by its error code, else by its HTTP status",
    Verdict.INNER: "by the error inside it, else `lost`",
    Verdict.CONNECT: "`transient` if it never connected, else `lost`",
}


def error_reference() -> str:
    """Three tables: HTTP statuses, AWS error codes, exception classes."""
    return "\n\n".join(
        "\n".join([f"| {head} | class | why |", "|---|---|---|", *lines])
        for head, lines in (
            ("HTTP status", _statuses()),
            ("AWS error code", _codes()),
            ("exception", _exceptions()),
        )
    )


def _statuses() -> Iterator[str]:
    for (verdict, why), statuses in groupby(STATUSES, key=STATUSES.__getitem__):
        yield _line([str(status) for status in statuses], verdict, why)
    yield _line(["any other 4xx"], Verdict.NEVER, "the receiver refuses this very work")
    yield _line(["anything else"], Verdict.RETRY, "the receiver could not serve it now")


def _codes() -> Iterator[str]:
    for (verdict, why), codes in groupby(AWS_CODES, key=AWS_CODES.__getitem__):
        yield _line([f"`{code}`" for code in codes], verdict, why)
    yield "| any other | by its HTTP status | the service says with it whose fault it is |"


def _exceptions() -> Iterator[str]:
    for (verdict, why), rows in groupby(TABLE, key=lambda row: (row.verdict, row.why)):
        yield _line([f"`{row.name}`" for row in rows], verdict, why)
    yield "| any other | `transient` | nobody knows it, and the caps bound what it can cost |"


def _line(names: list[str], verdict: Verdict, why: str) -> str:
    return f"| {', '.join(names)} | {CLASSES[verdict]} | {why} |"
