"""The password of IAM database authentication, signed locally by botocore's own signer without an rds client."""

from botocore.auth import SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.session import Session

_VALID_SECONDS = 900


def auth_token(host: str, port: int, user: str, region: str) -> str:
    """A token for one connection, valid for 15 minutes (Amazon RDS user guide, IAM database authentication).

    Raises botocore.exceptions.NoCredentialsError outside of a role.
    """
    session = Session()
    credentials = session.get_credentials()
    request = AWSRequest(method="GET", url=f"https://{host}:{port}/", params={"Action": "connect", "DBUser": user})
    SigV4QueryAuth(credentials, "rds-db", region, expires=_VALID_SECONDS).add_auth(request)
    return str(request.url).removeprefix("https://")
