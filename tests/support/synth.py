"""One synthesis of each configuration per test run, made by the command that `make synth` runs."""

import fcntl
import functools
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.run import RUN_VARIABLE

ROOT = Path(__file__).parents[2]
JOBS_DIR = ROOT / "lambdas" / "jobs"
EXAMPLES = tuple(sorted(path.stem for path in (ROOT / "examples").glob("*.json")))

Template = dict[str, Any]


@dataclass(frozen=True)
class Synthesis:
    """What one synth left: `templates` by stack name, and everything else in `folder`."""

    folder: Path
    output: str

    @functools.cached_property
    def templates(self) -> dict[str, Template]:
        found = sorted(self.folder.glob("*.template.json"))
        return {path.name.removesuffix(".template.json"): json.loads(path.read_text()) for path in found}

    def stack(self, name: str) -> Template:
        """The template of the stack whose name ends with `name`: Database, Jobs or Monitoring."""
        (template,) = (template for stack, template in self.templates.items() if stack.endswith(name))
        return template

    @property
    def report(self) -> dict[str, Any]:
        """What cdk-nag and the CDK's own checks found."""
        report: dict[str, Any] = json.loads((self.folder / "validation-report.json").read_text())
        return report


@functools.cache
def synthesis(example: str) -> Synthesis:
    """The synthesis of `examples/<example>.json`. It is made once per run, also with several workers."""
    base = Path(os.environ[RUN_VARIABLE])
    base.mkdir(mode=0o711, exist_ok=True)
    folder = base / f"synth-{example}"
    with (base / f"synth-{example}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done, failed = base / f"synth-{example}.out", base / f"synth-{example}.err"
        if not done.exists() and not failed.exists():
            finished = synth("-c", f"config=examples/{example}.json", "-o", str(folder))
            (failed if finished.returncode else done).write_text(finished.stdout + finished.stderr)
        assert not failed.exists(), failed.read_text()
        return Synthesis(folder, done.read_text())


def synth(*arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run app.py with nothing in its environment that could find AWS, Docker or another Node.js."""
    path = os.pathsep.join(str(ROOT / folder) for folder in (".", "layers/stopline/python"))
    return subprocess.run(
        [sys.executable, "app.py", *arguments],
        cwd=ROOT,
        env={"PATH": "/nonexistent", "PYTHONPATH": path, "AWS_EC2_METADATA_DISABLED": "true", **(environment or {})},
        capture_output=True,
        text=True,
        check=False,
    )
