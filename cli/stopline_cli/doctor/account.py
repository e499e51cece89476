"""An AWS account as the doctor sees it: calls that read, and a plain word for each right that is missing."""

from collections.abc import Iterator
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from stopline_cli.errors import CommandError

_DENIED = frozenset(
    {"AccessDenied", "AccessDeniedException", "AccessDeniedFault", "AuthorizationError", "UnauthorizedOperation"}
)
_CONFIG = Config(connect_timeout=5, read_timeout=60, retries={"total_max_attempts": 3, "mode": "standard"})
_INVOKING = Config(connect_timeout=5, read_timeout=180, retries={"total_max_attempts": 1})


class MissingRight(Exception):
    """The caller may not make a call. `action` is what IAM calls it."""

    def __init__(self, action: str, told: str) -> None:
        super().__init__(told)
        self.action = action


class Account:
    """The account and region that the AWS SDK's own settings name."""

    def __init__(self, session: boto3.Session | None = None) -> None:
        self._session = session or boto3.Session()
        self._clients: dict[str, Any] = {}
        if self._session.region_name is None:
            raise CommandError(
                "AWS region", "is not known", "set AWS_REGION, or a profile with a region in AWS_PROFILE"
            )
        self.region: str = self._session.region_name

    def call(self, service: str, operation: str, **params: Any) -> dict[str, Any]:
        """One call, as `call("sqs", "GetQueueAttributes", ...)`. Raises MissingRight, and ClientError for the rest.

        What reaches nobody at all (no credentials, no network) is a CommandError.
        """
        try:
            return dict(getattr(self._client(service), _snake(operation))(**params))
        except ClientError as error:
            if error.response["Error"]["Code"] in _DENIED:
                raise MissingRight(_action(service, operation), error.response["Error"]["Message"]) from None
            raise
        except BotoCoreError as error:
            raise CommandError(
                f"AWS {service} in {self.region}", str(error), "see to credentials (AWS_PROFILE), region and network"
            ) from None

    def pages(self, service: str, operation: str, key: str, **params: Any) -> Iterator[Any]:
        """Every item of a list that comes in pages; `key` names the list in the answer."""
        more: dict[str, Any] = {}
        while True:
            answer = self.call(service, operation, **params, **more)
            yield from answer.get(key, [])
            token = answer.get("NextToken")
            if not token:
                return
            more = {"NextToken": token}

    def _client(self, service: str) -> Any:
        if service not in self._clients:
            config = _INVOKING if service == "lambda" else _CONFIG
            self._clients[service] = self._session.client(service, config=config)
        return self._clients[service]


def _snake(operation: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in operation).lstrip("_")


def _action(service: str, operation: str) -> str:
    return f"{service}:{'InvokeFunction' if operation == 'Invoke' else operation}"
