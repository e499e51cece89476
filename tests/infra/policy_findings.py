"""What parliament says of a policy, without what it is known to get wrong."""

import json
import warnings
from typing import Any

from tests.infra.resolved import NETWORK

with warnings.catch_warnings():
    # It leaves the files open that it reads while it is imported.
    warnings.simplefilter("ignore", ResourceWarning)
    import parliament


def findings(document: dict[str, Any]) -> list[str]:
    """Every finding that is one: an action that does not exist, a resource or condition that it does not take."""
    found = parliament.analyze_policy_string(json.dumps(document)).findings
    return [f"{each.issue}: {each.detail}" for each in found if not _known(each)]


def _known(finding: Any) -> bool:
    """Three things. The network interface's rights stand on "*", and nothing else does. It wants a resource of every
    type that an action takes, where InvokeModel takes one of eight: test_roles.py lists those. And it knows keys of
    every service by the prefix aws: only; `lambda:SourceFunctionArn` comes with every call of a function's code."""
    if finding.issue == "RESOURCE_STAR":
        return set(finding.detail) <= set(NETWORK)
    if finding.issue == "RESOURCE_MISMATCH":
        return {each["action"] for each in finding.detail} == {"bedrock:InvokeModel"}
    return finding.issue == "UNKNOWN_CONDITION_FOR_ACTION" and "lambda:SourceFunctionArn" in str(finding)
