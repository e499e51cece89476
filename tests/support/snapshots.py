"""Snapshots of the default deployment's templates: `make snapshots` writes them, a review reads their difference."""

import json
import re
import sys
from pathlib import Path

from tests.support.synth import ROOT, Template, synth

FOLDER = ROOT / "tests" / "infra" / "snapshots"

_ASSET = re.compile(r"\b[0-9a-f]{64}\b")
_VERSION = re.compile(r"(CurrentVersion[0-9A-F]{8})[0-9a-f]{32}")


def normalised(template: Template) -> str:
    """A template as text without what changes with every line of code: the hashes of assets and of versions."""
    text = json.dumps(template, indent=1, sort_keys=True) + "\n"
    return _VERSION.sub(r"\1<version>", _ASSET.sub("<asset>", text))


def write(folder: Path) -> None:
    """Write the snapshot of each stack from a synth of the default configuration into `folder`."""
    out = ROOT / "cdk.out" / "snapshots"
    finished = synth("-c", "config=examples/default.json", "-o", str(out))
    if finished.returncode:
        sys.exit(finished.stderr)
    folder.mkdir(exist_ok=True)
    for path in sorted(out.glob("*.template.json")):
        target = folder / path.name.replace(".template.json", ".json")
        target.write_text(normalised(json.loads(path.read_text())))


if __name__ == "__main__":
    write(FOLDER)
