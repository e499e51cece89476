"""A kind's code: its folder, imported as the package `stopline_jobs.<kind>` so that its relative imports work."""

import importlib
import inspect
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from stopline.errors import InvalidInput, StoplineError
from stopline.kind_classes import NONE, KindClasses, read_classes

PACKAGE = "stopline_jobs"


class KindNotLoadable(StoplineError):
    """A kind's handler cannot be imported or has no usable `run`. Nothing of the kind is claimed."""

    def __init__(self, kind: str, file: Path, cause: str) -> None:
        super().__init__(f"kind {kind}: {file}: {cause}")
        self.kind = kind


@dataclass(frozen=True, slots=True)
class KindCode:
    """What a kind's handler.py offers: `run`, and `reconcile` and `CLASSES` when it has them."""

    kind: str
    run: Callable[[Any], object]
    reconcile: Callable[[Any], object] | None
    classes: KindClasses = NONE


def load_kind(jobs_dir: Path, kind: str) -> KindCode:
    """Imports `<jobs_dir>/<kind>/handler.py`, once per process. Raises KindNotLoadable naming kind, file and cause."""
    file = jobs_dir / kind / "handler.py"
    if not file.is_file():
        raise KindNotLoadable(kind, file, "the file does not exist. Add it, or take the kind out of STOPLINE_KINDS")
    _root(jobs_dir)
    try:
        module = importlib.import_module(f"{PACKAGE}.{kind}.handler")
    except (Exception, SystemExit) as error:
        raise KindNotLoadable(kind, file, f"import failed: {_cause(error)}") from error
    run = _function(module, "run", kind, file)
    if run is None:
        raise KindNotLoadable(kind, file, "it has no function `run`. Define run(job)")
    return KindCode(kind, run, _function(module, "reconcile", kind, file), _classes(module, kind, file))


def _root(jobs_dir: Path) -> None:
    """Makes `stopline_jobs` the package whose folder is `jobs_dir`; another folder's modules are dropped."""
    path = str(jobs_dir.resolve())
    present = sys.modules.get(PACKAGE)
    if present is not None and list(present.__path__) == [path]:
        return
    for name in [name for name in sys.modules if name == PACKAGE or name.startswith(PACKAGE + ".")]:
        del sys.modules[name]
    root = ModuleType(PACKAGE, "The kinds of this installation.")
    root.__path__ = [path]
    sys.modules[PACKAGE] = root
    importlib.invalidate_caches()


def _function(module: ModuleType, name: str, kind: str, file: Path) -> Callable[[Any], object] | None:
    found = getattr(module, name, None)
    if found is None:
        return None
    if not callable(found):
        raise KindNotLoadable(kind, file, f"`{name}` is not a function. Define {name}(job)")
    # Calling one of these starts nothing, which would then count as a success.
    if inspect.iscoroutinefunction(found) or inspect.isgeneratorfunction(found) or inspect.isasyncgenfunction(found):
        raise KindNotLoadable(kind, file, f"`{name}` must be a plain function: Stopline awaits and iterates nothing")
    try:
        inspect.signature(found).bind(object())
    except TypeError as error:
        raise KindNotLoadable(kind, file, f"`{name}` must take one argument, the job: {error}") from error
    except ValueError:
        pass  # a callable without a readable signature is judged when it is called
    return found  # type: ignore[no-any-return]


def _classes(module: ModuleType, kind: str, file: Path) -> KindClasses:
    if not hasattr(module, "CLASSES"):
        return NONE
    try:
        return read_classes(module.CLASSES)
    except InvalidInput as error:
        raise KindNotLoadable(kind, file, str(error)) from error


def _cause(error: BaseException) -> str:
    """Type, message and the innermost line of the kind's own code, so that one line of log is enough to find it."""
    if isinstance(error, SyntaxError):
        return f"SyntaxError: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    where = f" ({frames[-1].filename}:{frames[-1].lineno})" if frames else ""
    return f"{type(error).__name__}: {error}{where}"[:2000]
