"""Python packages for the machine that a function runs on, fetched by this machine's pip as ready wheels.

Every package is pinned, so that the same files give the same function. What Lambda's runtime has is left out.
"""

import hashlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from importlib.util import find_spec
from pathlib import Path

from stacks.constructs.folders import built
from stacks.constructs.machine import Machine
from stopline.errors import StoplineError

IN_THE_RUNTIME = frozenset({"boto3", "botocore", "jmespath", "python-dateutil", "s3transfer", "six", "urllib3"})
"""Lambda's Python runtime has these: a copy in a package costs 26 MB and hides the one that AWS keeps up to date."""

_RECIPE = "3"
"""Changes when this module builds something else from the same files."""
_INSTALLERS_NOTES = ("RECORD", "INSTALLER", "REQUESTED", "direct_url.json")
_PIN = re.compile(r"([A-Za-z0-9][A-Za-z0-9._-]*)(?:\[[^]]*\])?==([^\s;#*]+)(?:\s+#.*)?")


class PackagesError(StoplineError):
    """Packages of a function cannot be had as they are asked for. Names the file, the rule and the fix."""

    def __init__(self, where: str, rule: str) -> None:
        super().__init__(f"{where}: {rule}")


@dataclass(frozen=True, slots=True)
class Pins:
    """Requirements files, as the words that errors call them by, and the pinned versions in each."""

    files: Mapping[str, Mapping[str, str]]

    @property
    def versions(self) -> dict[str, str]:
        """Every pinned package, by its normalised name."""
        return {name: version for pins in self.files.values() for name, version in pins.items()}

    @property
    def where(self) -> str:
        return ", ".join(self.files)


def read_pins(files: Mapping[str, Path]) -> Pins:
    """Requirements files in which every package is pinned with ==. Raises PackagesError naming file and line."""
    found: dict[str, dict[str, str]] = {}
    owners: dict[str, str] = {}
    for label, path in files.items():
        found[label] = _read(label, path)
        for name, version in found[label].items():
            other = owners.setdefault(name, label)
            if found[other][name] != version:
                told = f"{other} pins {found[other][name]} for the same function; pin one version in both"
                raise PackagesError(label, f"{name}=={version}: {told}")
    return Pins(found)


def installed(pins: Pins, machine: Machine, cache: Path, *, without: Iterable[str] = ()) -> Path:
    """A folder with the pinned packages for `machine`, minus `without` and what the runtime has.

    It comes from the cache after the first time, so that a second run needs no network. Raises PackagesError.
    """
    left_out = frozenset(without) | IN_THE_RUNTIME
    lines = [f"{name}=={version}" for name, version in sorted(pins.versions.items())]
    words = [_RECIPE, machine.python, *machine.platforms, *lines, "without", *sorted(left_out)]
    key = hashlib.sha256("\n".join(words).encode()).hexdigest()[:20]

    def build(folder: Path) -> None:
        _pip(pins.where, [*lines, "--target", str(folder), *_for_machine(machine)])
        _only_pinned(folder, pins)
        for name in left_out:
            _remove(folder, name)
        _tidy(folder)

    return built(cache, "packages", key, build)


def distributions(folder: Path) -> dict[str, str]:
    """Names and versions of the packages in a folder."""
    found = {}
    for metadata in sorted(folder.glob("*.dist-info/METADATA")):
        headers = HeaderParser().parsestr(metadata.read_text(encoding="utf-8"))
        found[_normal(str(headers["Name"]))] = str(headers["Version"])
    return found


def _read(label: str, path: Path) -> dict[str, str]:
    pins: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        match = _PIN.fullmatch(text)
        if match is None:
            rule = "every line pins one package, its dependencies included, such as name==1.2.3"
            raise PackagesError(f"{label} line {number}", f"{text[:80]!r} does not: {rule}; write it so")
        pins[_normal(match.group(1))] = match.group(2)
    return pins


def _for_machine(machine: Machine) -> list[str]:
    platforms = [word for name in machine.platforms for word in ("--platform", name)]
    return [*platforms, "--only-binary=:all:", "--implementation", "cp", "--python-version", machine.python]


def _pip(where: str, words: Sequence[str]) -> None:
    quiet = ("--quiet", "--no-input", "--disable-pip-version-check", "--no-compile", "--no-user", "--no-warn-conflicts")
    command = [_python_with_pip(), "-m", "pip", "install", *quiet, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise PackagesError(where, f"pip got no such set of wheels for the function's machine. {_said(done.stderr)}")


def _said(stderr: str) -> str:
    """Pip's errors without its lists of hundreds of versions, and what an empty list usually means."""
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR")] or stderr.splitlines()[-3:]
    text = re.sub(r" \(from versions: (?!none)[^)]*\)", "", "\n".join(errors))
    if "from versions: none" in text:
        text += "\nEither no index was reached (only the first build needs one) or it has no wheel for that machine."
    return text[:2000]


def _python_with_pip() -> str:
    """This Python, or the one that its virtual environment was made from: some environments are made without pip."""
    if find_spec("pip") is not None:
        return sys.executable
    return str(getattr(sys, "_base_executable", sys.executable))


def _only_pinned(folder: Path, pins: Pins) -> None:
    for name, version in distributions(folder).items():
        if name not in pins.versions and name not in IN_THE_RUNTIME:
            raise PackagesError(pins.where, f"needs {name} too, which no line pins; add {name}=={version}")


def _remove(folder: Path, name: str) -> None:
    for info in folder.glob("*.dist-info"):
        if _normal(info.name.split("-", 1)[0]) != name:
            continue
        for line in (info / "RECORD").read_text(encoding="utf-8").splitlines():
            path = (folder / line.split(",")[0]).resolve()
            if path.is_relative_to(folder.resolve()):
                path.unlink(missing_ok=True)
        shutil.rmtree(info)
    for empty in sorted((path for path in folder.rglob("*") if path.is_dir()), reverse=True):
        if not any(empty.iterdir()):
            empty.rmdir()


def _tidy(folder: Path) -> None:
    """Commands and the installer's notes are of no use in a function and differ between machines."""
    shutil.rmtree(folder / "bin", ignore_errors=True)
    for cache in folder.rglob("__pycache__"):
        shutil.rmtree(cache)
    for info in folder.glob("*.dist-info"):
        for name in _INSTALLERS_NOTES:
            (info / name).unlink(missing_ok=True)


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
