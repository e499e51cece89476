"""The CDK app. `cdk deploy` runs it without arguments; `make synth` runs `python app.py -c key=value -o folder`."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from stacks.app import build
from stacks.config import ROOT
from stopline.errors import StoplineError


def main() -> None:
    """Synthesize, and end with the error's text alone when the configuration or a policy is refused."""
    parser = argparse.ArgumentParser(description="Synthesize the CloudFormation templates of a deployment.")
    parser.add_argument("-c", "--context", action="append", default=[], metavar="KEY=VALUE", type=_pair)
    parser.add_argument("-o", "--output", metavar="FOLDER", type=Path)
    arguments = parser.parse_args()
    context: dict[str, Any] = json.loads((ROOT / "cdk.json").read_text(encoding="utf-8"))["context"]
    try:
        deployment = build(context | dict(arguments.context), arguments.output)
    except StoplineError as error:
        raise SystemExit(f"{type(error).__name__}: {error}") from None
    try:
        deployment.app.synth()
    except RuntimeError as error:
        # What cdk-nag or the CDK's own checks found is printed by then; their JavaScript frames help nobody.
        if "ValidationFailed" in str(error):
            raise SystemExit(str(error)) from None
        raise
    # On the error stream: the CDK command line prints templates on the other.
    sys.stderr.write("".join(f"  {line}\n" for line in deployment.arithmetic))


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not KEY=VALUE")
    return key, value


if __name__ == "__main__":
    main()
