"""The functions of a deployment as local processes: a poller for each kind or group of kinds, and the others."""

from collections.abc import Mapping
from typing import Self

from stopline.policy import Policy
from stopline_cli.local.database import DATABASE
from stopline_cli.local.functions import FunctionProcess
from stopline_cli.local.postgres import EmbeddedPostgres
from stopline_cli.local.prepare import JOBS

UPKEEP_SECONDS = 60
"""The limit of one invocation of the sweeper and of the monitor."""
REGION = "eu-central-1"


class Deployment:
    """The functions that work on one database, each as its own role. Processes start when first invoked.

    `environment` is added to that of every poller, over the values of the kinds' own policies: the addresses of
    stand-ins, for example.
    """

    def __init__(
        self,
        server: EmbeddedPostgres,
        policies: Mapping[str, Policy],
        *,
        identity: str,
        environment: Mapping[str, str] | None = None,
        dbname: str = DATABASE,
    ) -> None:
        self._place = server.admin_conninfo(dbname)
        self._identity = identity
        self._environment = dict(environment or {})
        self.sweeper = self._upkeep("sweeper")
        self.monitor = self._upkeep("monitor")
        self.pollers = {name: self._poller(name, kinds) for name, kinds in grouped(policies).items()}

    def stop(self) -> None:
        """Ends all processes."""
        for function in (*self.pollers.values(), self.sweeper, self.monitor):
            function.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _poller(self, name: str, kinds: list[Policy]) -> FunctionProcess:
        env = self._database("stopline_worker") | {
            "STOPLINE_INSTALLATION": self._identity,
            "STOPLINE_KINDS": ",".join(kind.name for kind in kinds),
            "STOPLINE_JOBS_DIR": str(JOBS),
        }
        for kind in kinds:
            env |= kind.access.environment
            if kind.access.database_role is not None:
                env[f"STOPLINE_ROLE_{kind.name.upper()}"] = kind.access.database_role
        return FunctionProcess(
            f"poller-{name}",
            "lambdas/poller/handler.py",
            env | self._environment,
            kinds[0].run.poller_timeout.total_seconds(),
            memory_mb=kinds[0].run.memory_mb,
        )

    def _upkeep(self, name: str) -> FunctionProcess:
        return FunctionProcess(name, f"lambdas/{name}/handler.py", self._database(f"stopline_{name}"), UPKEEP_SECONDS)

    def _database(self, role: str) -> dict[str, str]:
        return {
            "AWS_REGION": REGION,
            "STOPLINE_DB_HOST": str(self._place["host"]),
            "STOPLINE_DB_PORT": str(self._place["port"]),
            "STOPLINE_DB_NAME": str(self._place["dbname"]),
            "STOPLINE_DB_USER": role,
            "STOPLINE_DB_AUTH": "none",
        }


def grouped(policies: Mapping[str, Policy]) -> dict[str, list[Policy]]:
    """The kinds of each poller, by the poller's name."""
    groups: dict[str, list[Policy]] = {}
    for policy in policies.values():
        groups.setdefault(policy.poller_name, []).append(policy)
    return groups
