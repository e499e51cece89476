"""What is uploaded, as folders: the layer that every function has, and each function's own code.

They are built here and not in Docker, once for each set of inputs. Nothing of the CDK is needed to build them.
"""

import hashlib
from collections.abc import Sequence
from pathlib import Path

from stacks.constructs.folders import built, copy_sources, digest, files_of, link_tree
from stacks.constructs.machine import Machine
from stacks.constructs.packages import PackagesError, installed, read_pins
from stopline.policy.hooks import HANDLER, reconciles

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "assets"
LAYER = ROOT / "layers" / "stopline"
LAMBDAS = ROOT / "lambdas"
SQL = ROOT / "sql"

_REQUIREMENTS = "requirements.txt"
_POLICY_FILES = ("policy.toml", "source.sql")
_HOOKS = b'"""The hook that the migrator looks for; the code is with the poller."""\n\n\ndef reconcile(job): ...\n'
"""Instead of the handler itself, so that a change of code alone runs no migration."""
_OWN_NAMES = frozenset({"handler.py", "jobs", "sql", "stopline"})


def build_layer(machine: Machine, cache: Path = CACHE) -> Path:
    """The layer's folder, python/ on top: the library and the packages that it needs."""
    packages = installed(read_pins(_layer_requirements()), machine, cache)
    library = LAYER / "python"
    key = _key(packages.name, digest(library))

    def build(folder: Path) -> None:
        link_tree(packages, folder / "python")
        copy_sources(library, folder / "python")

    return built(cache, f"layer-{machine.architecture}-{machine.python}", key, build)


def build_function(
    handler: str,
    machine: Machine,
    jobs_dir: Path,
    *,
    kinds: Sequence[str] = (),
    cache: Path = CACHE,
) -> Path:
    """A function's folder: lambdas/<handler>/, and what goes with it.

    A poller's holds the folders and packages of `kinds`, the migrator's all of sql/ and their policies and sources, the
    bootstrap's sql/bootstrap.sql. Raises PackagesError for a kind whose packages cannot be had.
    """
    runs = kinds if handler == "poller" else ()
    packages = _kind_packages(runs, machine, jobs_dir, cache)
    parts = {"code": LAMBDAS / handler, **{kind: jobs_dir / kind for kind in sorted(runs)}}
    texts = _texts(handler, jobs_dir, kinds)
    inputs = [f"{name} {digest(folder)}" for name, folder in parts.items()]
    inputs += [f"{name} {hashlib.sha256(text).hexdigest()}" for name, text in sorted(texts.items())]
    key = _key(packages.name if packages else "", *inputs)

    def build(folder: Path) -> None:
        if packages is not None:
            link_tree(packages, folder)
        for name, source in parts.items():
            copy_sources(source, folder if name == "code" else folder / "jobs" / name)
        for name, text in texts.items():
            target = folder / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(text)

    return built(cache, f"function-{handler}", key, build)


def _layer_requirements() -> dict[str, Path]:
    return {"layers/stopline/requirements.txt": LAYER / _REQUIREMENTS}


def _kind_packages(kinds: Sequence[str], machine: Machine, jobs_dir: Path, cache: Path) -> Path | None:
    """The packages of the kinds' own requirements files; what the layer has already is not shipped again."""
    own = {f"{kind}/{_REQUIREMENTS}": jobs_dir / kind / _REQUIREMENTS for kind in sorted(kinds)}
    own = {label: path for label, path in own.items() if path.is_file()}
    if not own:
        return None
    layer = _layer_requirements()
    together = read_pins({**layer, **own})
    packages = installed(together, machine, cache, without=together.files[next(iter(layer))])
    for entry in packages.iterdir():
        if entry.name in _OWN_NAMES:
            told = f"a package brings {entry.name!r}, which a function's folder has for itself; take another package"
            raise PackagesError(", ".join(own), told)
    return packages


def _texts(handler: str, jobs_dir: Path, kinds: Sequence[str]) -> dict[str, bytes]:
    """SQL and policies by their place in the function's folder."""
    if handler == "bootstrap":
        return {"sql/bootstrap.sql": (SQL / "bootstrap.sql").read_bytes()}
    if handler != "migrator":
        return {}
    found = {f"sql/{path.as_posix()}": (SQL / path).read_bytes() for path in files_of(SQL)}
    for kind in sorted(kinds):
        for name in _POLICY_FILES:
            if (jobs_dir / kind / name).is_file():
                found[f"jobs/{kind}/{name}"] = (jobs_dir / kind / name).read_bytes()
        if reconciles(jobs_dir / kind / HANDLER):
            found[f"jobs/{kind}/{HANDLER}"] = _HOOKS
    return found


def _key(*words: str) -> str:
    return hashlib.sha256("\n".join(words).encode()).hexdigest()[:20]
