"""The first connection of a deploy: to a database that may just be starting, with a right that may not be known yet."""

import time

import psycopg

from stopline.errors import InfrastructureError
from stopline.store.connection import connect
from stopline.store.target import Target

_PAUSE_SECONDS = 2.0


def reach(target: Target, *, seconds: float = 60, pause: float = _PAUSE_SECONDS) -> psycopg.Connection:
    """Connect, and try again for up to `seconds` while that fails.

    A new cluster answers a moment after CloudFormation calls it available, one that resumes after about 20 seconds, and
    a new role's right to sign in takes seconds to be known everywhere. Raises InfrastructureError: the last reason.
    """
    end = time.monotonic() + seconds
    while True:
        try:
            return connect(target)
        except InfrastructureError as error:
            if time.monotonic() + pause >= end:
                raise InfrastructureError(f"{error} (tried for {seconds:g} s)") from None
        time.sleep(pause)
