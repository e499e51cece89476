"""A template as CloudFormation would deploy it in a made-up account: intrinsic functions replaced by their values."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.support.synth import Template

REGION = "eu-central-1"
ACCOUNT = "111122223333"
DATABASE = "cluster-DATABASE"
NETWORK = [
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
]
"""What Lambda does with a role to place its function in a VPC."""
_PSEUDO = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
    "AWS::StackName": "StoplineJobs",
}
_ARNS = {
    "AWS::Lambda::Function": "lambda:{place}:function:{name}",
    "AWS::Lambda::Version": "lambda:{place}:function:{name}",
    "AWS::Logs::LogGroup": "logs:{place}:log-group:{name}:*",
    "AWS::SQS::Queue": "sqs:{place}:{name}",
    "AWS::Scheduler::ScheduleGroup": "scheduler:{place}:schedule-group/{name}",
    "AWS::IAM::Role": "iam::111122223333:role/{name}",
}


def resolved(template: Template) -> Template:
    """The template with every value worked out; a resource's name is its logical id without the CDK's checksum."""
    return {key: _value(template, part) for key, part in template.items()}


def resources(template: Template, kind: str) -> dict[str, dict[str, Any]]:
    """Properties of every resource of a type, by name, from a resolved template."""
    return {
        name_of(logical_id): resource.get("Properties", {})
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == kind
    }


def name_of(logical_id: str) -> str:
    """A logical id without the checksum that the CDK puts behind it."""
    tail = logical_id[-8:]
    return logical_id[:-8] if len(tail) == 8 and all(letter in "0123456789ABCDEF" for letter in tail) else logical_id


def statements(role: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Every statement of a role's inline policies, its actions and resources as lists."""
    for policy in role.get("Policies", []):
        for statement in policy["PolicyDocument"]["Statement"]:
            listed = {key: [value] if isinstance(value, str) else value for key, value in statement.items()}
            yield {**statement, "Action": listed["Action"], "Resource": listed["Resource"]}


def _value(template: Template, part: Any) -> Any:
    if isinstance(part, list):
        return [_value(template, each) for each in part]
    if not isinstance(part, dict):
        return part
    if len(part) == 1:
        ((name, argument),) = part.items()
        if name == "Ref":
            return _PSEUDO.get(argument) or name_of(argument)
        if name == "Fn::GetAtt":
            return _attribute(template, argument)
        if name == "Fn::Join":
            return argument[0].join(str(_value(template, each)) for each in argument[1])
        if name == "Fn::Sub":
            return _substitute(argument)
        if name in ("Fn::GetStackOutput", "Fn::ImportValue"):
            return _of_the_database(str(argument))
    return {key: _value(template, each) for key, each in part.items()}


def _attribute(template: Template, argument: list[str] | str) -> str:
    logical_id, attribute = argument.split(".", 1) if isinstance(argument, str) else argument
    form = _ARNS.get(template["Resources"][logical_id]["Type"])
    if attribute != "Arn" or form is None:
        return f"{name_of(logical_id)}.{attribute}"
    return "arn:aws:" + form.format(place=f"{REGION}:{ACCOUNT}", name=name_of(logical_id))


def _substitute(text: str) -> str:
    for name, value in _PSEUDO.items():
        text = text.replace(f"${{{name}}}", value)
    return text


def _of_the_database(text: str) -> str:
    if "ResourceId" in text:
        return DATABASE
    return "database.example.com" if "Endpoint" in text else "of-the-database-stack"
