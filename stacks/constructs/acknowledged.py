"""Findings that were looked at and stay, each with its reason, said where the construct is made."""

from aws_cdk import Acknowledgment, Validations
from constructs import IConstruct


def acknowledge(construct: IConstruct, finding: str, reason: str) -> None:
    """Leave one finding of a check (`AwsSolutions-IAM5[Resource::*]`, `CloudFormation-Validate::E9006`) on `construct`.

    tests/infra/test_nag.py holds the exact list of them.
    """
    Validations.of(construct).acknowledge(Acknowledgment(id=finding, reason=reason))
