"""What each function's role may do: its own log group, its network interface, its database users, and what its kinds
declare in `[access]`. No managed policy: AWS changes those, and all of them name "*"."""

import re
from collections.abc import Iterable, Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from constructs import Construct

from stacks.constructs.acknowledged import acknowledge
from stopline.policy import Policy

NETWORK_ACTIONS = (
    "ec2:AssignPrivateIpAddresses",
    "ec2:CreateNetworkInterface",
    "ec2:DeleteNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:UnassignPrivateIpAddresses",
)
"""What Lambda itself does with a function's role to place it in a VPC."""

_PROFILE = re.compile(r"(?:global|us|us-gov|eu|apac|jp|au|ca|sa|me|af)\.(?=[a-z0-9-]+\.)")
_PROFILE_KINDS = ("inference-profile", "application-inference-profile")
_SECRET_SUFFIX = re.compile(r"-[A-Za-z0-9]{6}")


def function_role(
    scope: Construct, id: str, *, log_group: logs.LogGroup, statements: Sequence[iam.PolicyStatement]
) -> iam.Role:
    """A role for one function. Its rights are all in the one inline policy, created and deleted with it."""
    role = iam.Role(
        scope,
        id,
        assumed_by=iam.ServicePrincipal("lambda.amazonaws.com"),
        inline_policies={
            "own": iam.PolicyDocument(statements=[_logs(log_group), *_network(Stack.of(scope)), *statements])
        },
    )
    reason = "Lambda makes the function's network interface with them, before there is one; the code is denied them."
    acknowledge(role, "AwsSolutions-IAM5[Resource::*]", reason)
    for statement in statements:
        for resource in _in_every_region(statement):
            reason = "A geographic inference profile routes to Regions of its own choice; granted through it only."
            acknowledge(role, f"AwsSolutions-IAM5[Resource::{resource}]", reason)
    return role


def connect(stack: Stack, resource_id: str, roles: Iterable[str]) -> iam.PolicyStatement:
    """Signing in to the database as these roles and no others."""
    prefix = f"arn:{stack.partition}:rds-db:{stack.region}:{stack.account}:dbuser:{resource_id}"
    return _allow("Database", ["rds-db:connect"], [f"{prefix}/{role}" for role in sorted(set(roles))])


def access_statements(stack: Stack, policies: Iterable[Policy]) -> list[iam.PolicyStatement]:
    """What the kinds of one poller declare: models that they invoke and secrets that they read."""
    kinds = list(policies)
    statements = _models(stack, sorted({model for policy in kinds for model in policy.access.bedrock_models}))
    if names := sorted({secret for policy in kinds for secret in policy.access.secrets}):
        arns = [secret_arn(stack, name) for name in names]
        statements.append(_allow("Secrets", ["secretsmanager:GetSecretValue"], arns))
    return statements


def secret_arn(stack: Stack, secret: str) -> str:
    """A secret's ARN as policies name it. Secrets Manager puts six characters behind a name; a bare name gets a pattern
    of just that length, so that another secret whose name starts with it is not meant."""
    if not secret.startswith("arn:"):
        return f"arn:{stack.partition}:secretsmanager:{stack.region}:{stack.account}:secret:{secret}-??????"
    return secret if _SECRET_SUFFIX.fullmatch(secret[-7:]) else f"{secret}-??????"


def _models(stack: Stack, models: Iterable[str]) -> list[iam.PolicyStatement]:
    """Converse is authorised as InvokeModel. A cross-Region profile needs its model too, wherever it routes to, and
    that is granted through the profile only."""
    direct, profiles = [], []
    for model in models:
        if (model.startswith("arn:") and _resource_kind(model) in _PROFILE_KINDS) or _PROFILE.match(model):
            profiles.append(model)
        elif model.startswith("arn:"):
            direct.append(model)
        else:
            direct.append(f"arn:{stack.partition}:bedrock:{stack.region}::foundation-model/{model}")
    arns = [_profile_arn(stack, profile) for profile in profiles]
    statements = []
    if direct or arns:
        statements.append(_allow("Models", ["bedrock:InvokeModel"], [*direct, *arns]))
    for number, (profile, arn) in enumerate(zip(profiles, arns, strict=True), start=1):
        statements.append(
            _allow(
                f"ModelBehindProfile{number}",
                ["bedrock:InvokeModel"],
                _routed_models(stack, profile),
                {"ArnEquals": {"bedrock:InferenceProfileArn": arn}},
            )
        )
    return statements


def _profile_arn(stack: Stack, profile: str) -> str:
    if profile.startswith("arn:"):
        return profile
    return f"arn:{stack.partition}:bedrock:{stack.region}:{stack.account}:inference-profile/{profile}"


def _routed_models(stack: Stack, profile: str) -> list[str]:
    """The foundation models that a profile may route to: of a global one the model here and the one without a Region,
    of another the model in any Region. The ARN of an application's own profile does not tell its model."""
    name = profile.rsplit("/", 1)[-1]
    model = _PROFILE.sub("", name, count=1) if _PROFILE.match(name) else "*"
    regions = (stack.region, "") if name.startswith("global.") else ("*",)
    return [f"arn:{stack.partition}:bedrock:{region}::foundation-model/{model}" for region in regions]


def _in_every_region(statement: iam.PolicyStatement) -> list[str]:
    """The statement's models in every Region, as cdk-nag writes their ARNs."""
    texts = [re.sub(r"^arn:\$\{[^}]*\}", "arn:<AWS::Partition>", resource) for resource in statement.resources]
    return [text for text in texts if ":bedrock:*:" in text]


def _resource_kind(arn: str) -> str:
    return arn.split(":", 5)[-1].split("/", 1)[0]


def _logs(log_group: logs.LogGroup) -> iam.PolicyStatement:
    return _allow("Logs", ["logs:CreateLogStream", "logs:PutLogEvents"], [log_group.log_group_arn])


def _network(stack: Stack) -> list[iam.PolicyStatement]:
    """Lambda needs these rights on "*" before it has an interface; the function's own code is denied them again."""
    functions = f"arn:{stack.partition}:lambda:{stack.region}:{stack.account}:function:*"
    return [
        _allow("NetworkInterface", NETWORK_ACTIONS, ["*"]),
        iam.PolicyStatement(
            sid="NotByTheCode",
            effect=iam.Effect.DENY,
            actions=list(NETWORK_ACTIONS),
            resources=["*"],
            conditions={"ArnLike": {"lambda:SourceFunctionArn": functions}},
        ),
    ]


def _allow(
    sid: str, actions: Sequence[str], resources: Sequence[str], conditions: dict[str, object] | None = None
) -> iam.PolicyStatement:
    return iam.PolicyStatement(sid=sid, actions=list(actions), resources=list(resources), conditions=conditions)
