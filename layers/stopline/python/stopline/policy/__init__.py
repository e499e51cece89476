"""What a kind of job may do: the typed form of its `policy.toml`, its rules, and the most that a job of it can cost."""

from stopline.policy.exposure import WorstCase, worst_case
from stopline.policy.model import Policy
from stopline.policy.parse import load_policies, load_policy, overlay, parse_policy

__all__ = ["Policy", "WorstCase", "load_policies", "load_policy", "overlay", "parse_policy", "worst_case"]
