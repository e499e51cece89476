"""Where a database is and how to be let in."""

from dataclasses import dataclass
from typing import Any

CONNECT_TIMEOUT_SECONDS = 5
_KEEPALIVE_IDLE_SECONDS = 10
_KEEPALIVE_INTERVAL_SECONDS = 5
_KEEPALIVE_COUNT = 3
_UNACKNOWLEDGED_MS = 15_000


@dataclass(frozen=True, slots=True)
class Target:
    """One database as one role. `auth` is "iam" (a signed token per connection, TLS verified) or "none" (local)."""

    host: str
    port: int
    dbname: str
    user: str
    auth: str = "none"
    region: str | None = None
    sslrootcert: str | None = None
    application_name: str = "stopline"

    def conninfo(self, password: str | None) -> dict[str, Any]:
        """Keyword arguments for psycopg.connect.

        No start-up `options`: a proxy refuses them, so limits are set on the roles. A peer that vanished without a word
        is noticed within seconds (connect timeout, keepalives, TCP user timeout), well below any function's timeout.
        """
        info: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "dbname": self.dbname,
            "user": self.user,
            "connect_timeout": CONNECT_TIMEOUT_SECONDS,
            "keepalives": 1,
            "keepalives_idle": _KEEPALIVE_IDLE_SECONDS,
            "keepalives_interval": _KEEPALIVE_INTERVAL_SECONDS,
            "keepalives_count": _KEEPALIVE_COUNT,
            "tcp_user_timeout": _UNACKNOWLEDGED_MS,
            "target_session_attrs": "read-write",
            "application_name": self.application_name,
        }
        if self.auth == "iam":
            info |= {"password": password, "sslmode": "verify-full", "sslrootcert": self.sslrootcert}
        return info
