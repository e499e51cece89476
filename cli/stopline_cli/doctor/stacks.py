"""What a deployment consists of, as CloudFormation knows it."""

from dataclasses import dataclass

from botocore.exceptions import ClientError

from stopline_cli.doctor.account import Account
from stopline_cli.errors import CommandError

PARTS = ("Database", "Jobs", "Monitoring")


@dataclass(frozen=True, slots=True)
class Resource:
    """One resource of a stack. `id` is the physical one: a name, an ARN or a URL, as its type has it."""

    stack: str
    logical: str
    id: str
    type: str
    status: str


@dataclass(frozen=True, slots=True)
class Stacks:
    """The resources of a deployment's three stacks."""

    resources: tuple[Resource, ...]

    def of(self, *types: str) -> list[Resource]:
        """Those of one of the types, in the order of their logical ids."""
        return sorted((r for r in self.resources if r.type in types), key=lambda r: r.logical)


def find_stacks(account: Account, prefix: str) -> Stacks:
    """The stacks whose names start with `prefix`. Raises CommandError when one was never deployed, and MissingRight."""
    found: list[Resource] = []
    for name in (f"{prefix}{part}" for part in PARTS):
        try:
            listed = list(
                account.pages("cloudformation", "ListStackResources", "StackResourceSummaries", StackName=name)
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ValidationError":
                raise
            raise CommandError(
                f"stack {name} in {account.region}",
                "does not exist",
                "deploy it, or name the deployment's prefix (--prefix) and region (AWS_REGION)",
            ) from None
        found += [
            Resource(
                name,
                item["LogicalResourceId"],
                item.get("PhysicalResourceId", ""),
                item["ResourceType"],
                item["ResourceStatus"],
            )
            for item in listed
        ]
    return Stacks(tuple(found))
