"""Which hooks a kind's handler.py offers, found by reading it. It is never imported here: synth and deploy have neither
its packages nor its network."""

import ast
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path

from stopline.errors import PolicyError

HANDLER = "handler.py"
_RECONCILE = "reconcile"
_FIX = (
    f"define it as `def {_RECONCILE}(job):` at the top level of {HANDLER}, where it is found without running the file"
)


def reconciles(file: Path) -> bool:
    """Whether the handler in `file` defines `reconcile` at its top level; False when there is no such file.

    Raises PolicyError naming file and line for a file that Python cannot read, and for a `reconcile` that comes about
    in another way: the worker would have the hook and the database would never ask.
    """
    try:
        source = file.read_bytes()
    except FileNotFoundError:
        return False
    except OSError as broken:
        raise PolicyError(str(file), "file", f"cannot be read: {broken.strerror}") from None
    body = _parsed(file, source).body
    if any(isinstance(statement, ast.FunctionDef) and statement.name == _RECONCILE for statement in body):
        return True
    for line in _bindings(body):
        raise PolicyError(str(file), f"line {line}", f"{_RECONCILE} is no plain top-level function; {_FIX}")
    return False


def _parsed(file: Path, source: bytes) -> ast.Module:
    python = f"Python {sys.version_info.major}.{sys.version_info.minor}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is not this reader's business
            return ast.parse(source, filename=str(file))
    except SyntaxError as broken:
        raise PolicyError(str(file), f"line {broken.lineno or 1}", f"is no {python}: {broken.msg}") from None
    except (ValueError, RecursionError, MemoryError) as broken:
        cause = str(broken) or type(broken).__name__
        raise PolicyError(str(file), "line 1", f"is no {python}: {cause}") from None


def _bindings(body: list[ast.stmt]) -> Iterator[int]:
    """The lines on which statements of the module itself give the name a value."""
    for statement in body:
        match statement:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                names = [statement.name]
            case ast.Import() | ast.ImportFrom():
                names = [alias.asname or alias.name for alias in statement.names]
            case _:
                names = [node.id for node in _own(statement) if isinstance(node, ast.Name) and _is_store(node)]
                for inner in ("body", "orelse", "finalbody"):
                    yield from _bindings([part for part in getattr(statement, inner, []) if isinstance(part, ast.stmt)])
                for handler in getattr(statement, "handlers", []):
                    yield from _bindings(handler.body)
        if _RECONCILE in names:
            yield statement.lineno


def _own(statement: ast.stmt) -> Iterator[ast.AST]:
    """The expressions of one statement, without the statements and functions inside it."""
    inside: list[ast.AST] = [node for node in ast.iter_child_nodes(statement) if isinstance(node, ast.expr)]
    while inside:
        node = inside.pop()
        yield node
        if not isinstance(node, ast.Lambda):
            inside += list(ast.iter_child_nodes(node))


def _is_store(node: ast.Name) -> bool:
    return isinstance(node.ctx, ast.Store)
