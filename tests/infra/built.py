"""Built folders seen as Lambda sees them, and what stands in their files."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from stacks.constructs.bundles import build_layer
from stacks.constructs.machine import Machine

ARM = Machine("arm64", "3.14")
INTEL = Machine("x86_64", "3.14")
HERE = Machine("x86_64", f"{sys.version_info.major}.{sys.version_info.minor}")
"""What can be run on the machine of the tests."""

ELF = b"\x7fELF"
ELF_MACHINES = {0xB7: "arm64", 0x3E: "x86_64"}
_RUNTIME = ("boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3")


def elf_machine(path: Path) -> str | None:
    """The processor that a file is compiled for, None if it is not an ELF file."""
    with path.open("rb") as file:
        head = file.read(20)
    if not head.startswith(ELF):
        return None
    order = "little" if head[5] == 1 else "big"
    return ELF_MACHINES.get(int.from_bytes(head[18:20], order), "another")  # type: ignore[arg-type]


def files(folder: Path) -> dict[str, Path]:
    """Every file below a folder by its name in it, except what Python leaves behind."""
    found = (path for path in sorted(folder.rglob("*")) if path.is_file() and "__pycache__" not in path.parts)
    return {path.relative_to(folder).as_posix(): path for path in found}


def runtime_packages(folder: Path) -> Path:
    """A folder with nothing but what Lambda's runtime has."""
    folder.mkdir()
    for name in _RUNTIME:
        spec = find_spec(name)
        assert spec is not None
        assert spec.origin is not None
        origin = Path(spec.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / source.name).symlink_to(source)
    return folder


def run_as_lambda(code: str, function: Path, runtime: Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the function's folder, the layer and the runtime's packages on its path, in Lambda's order, and
    without this environment's packages."""
    path = [str(function), str(build_layer(HERE) / "python"), str(runtime)]
    program = f"import sys; sys.path[:0] = {path!r}; sys.dont_write_bytecode = True\n{code}"
    return subprocess.run([sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=False)
