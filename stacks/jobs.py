"""The jobs stack: everything that runs. A poller for each group of kinds, the sweeper, the monitor, and before them the
migrator, so that no new code meets an old schema."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from aws_cdk import CfnOutput, Stack
from aws_cdk import aws_lambda as lambda_
from constructs import Construct

from stacks.checks import SYSTEM_FUNCTIONS, arithmetic, check_deployment, connections, worst_cases
from stacks.config import Config
from stacks.connection import DatabaseConnection
from stacks.constructs.functions import stopline_function
from stacks.constructs.roles import access_statements
from stacks.constructs.saved_queries import SavedQueries
from stacks.constructs.schedules import Schedules
from stacks.constructs.triggers import DatabaseSetup
from stacks.log_queries import Logs
from stacks.pollers import PollerPlan, plan_pollers
from stacks.watched import Watched
from stopline.policy import Policy

WORKER = "stopline_worker"
MINUTE = timedelta(minutes=1)
JOBS_DIR = "/var/task/jobs"


class JobsStack(Stack):
    """`watched` is what the monitoring stack watches, `arithmetic` the lines that synth prints."""

    watched: Watched
    arithmetic: tuple[str, ...]

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        config: Config,
        database: DatabaseConnection,
        policies: Mapping[str, Policy],
        **kwargs: Any,
    ) -> None:
        super().__init__(
            scope,
            construct_id,
            description="Stopline: what runs",
            termination_protection=config.protect,
            **kwargs,
        )
        self._config, self._database = config, database
        pollers = plan_pollers(policies)
        check_deployment(config, database.max_connections, pollers)
        self.arithmetic = tuple(arithmetic(config, policies, pollers, database.max_connections))
        self._schedules = Schedules(self, "Schedules")
        functions = {f"poller {poller.name}": self._poller(poller) for poller in pollers}
        functions |= {name: self._system(name) for name in SYSTEM_FUNCTIONS}
        SavedQueries(
            self,
            "Queries",
            prefix=config.prefix,
            log_groups={
                Logs.POLLERS: [functions[f"poller {poller.name}"].log_group for poller in pollers],
                Logs.SWEEPER: [functions["sweeper"].log_group],
                Logs.MONITOR: [functions["monitor"].log_group],
            },
        )
        setup = DatabaseSetup(self, "Setup", config=config, database=database, kinds=sorted(policies))
        setup.before(*functions.values(), *self._schedules.entries)
        self.watched = Watched(
            functions={**functions, "migrator": setup.migrator},
            dead_letter_queues=(self._schedules.queue,),
            schedule_group=self._schedules.group.ref,
            cluster_identifier=database.cluster_identifier,
        )
        self._outputs(policies, pollers)

    def _poller(self, poller: PollerPlan) -> lambda_.Function:
        kinds = [policy.name for policy in poller.kinds]
        roles = {policy.name: policy.access.database_role for policy in poller.kinds if policy.access.database_role}
        name = identifier(poller.name)
        function = stopline_function(
            self,
            f"Poller{name}",
            config=self._config,
            database=self._database,
            name=f"poller of {', '.join(kinds)}"[:200],
            handler_dir="poller",
            database_role=WORKER,
            more_database_roles=sorted(roles.values()),
            timeout=poller.timeout,
            memory_mb=poller.memory_mb,
            kinds=kinds,
            environment={
                **{key: text for policy in poller.kinds for key, text in policy.access.environment.items()},
                "STOPLINE_KINDS": ",".join(kinds),
                "STOPLINE_JOBS_DIR": JOBS_DIR,
                "STOPLINE_INSTALLATION": self._database.identity,
                **{f"STOPLINE_ROLE_{kind.upper()}": role for kind, role in roles.items()},
            },
            statements=access_statements(self, poller.kinds),
            egress=poller.egress,
            reserved=poller.invocations if self._config.reserve_concurrency else None,
        )
        self._schedules.every(f"Every{name}", function, poller.every)
        for policy in poller.periodic:
            schedule = str(policy.enqueue.schedule)
            occurrence = f"Occurrence{identifier(policy.name)}"
            self._schedules.occurrence(occurrence, function, policy.name, schedule, policy.enqueue.timezone)
        return function

    def _system(self, name: str) -> lambda_.Function:
        """The sweeper or the monitor: once a minute, each with so much time that this many can overlap."""
        overlapping = SYSTEM_FUNCTIONS[name]
        function = stopline_function(
            self,
            name.capitalize(),
            config=self._config,
            database=self._database,
            name=name,
            handler_dir=name,
            database_role=f"stopline_{name}",
            timeout=overlapping * MINUTE,
            reserved=overlapping if self._config.reserve_concurrency else None,
        )
        self._schedules.every(f"Every{name.capitalize()}", function, MINUTE)
        return function

    def _outputs(self, policies: Mapping[str, Policy], pollers: list[PollerPlan]) -> None:
        for kind, working in worst_cases(policies).items():
            CfnOutput(
                self,
                f"WorstCase{identifier(kind).replace('_', 'U')}",
                value=working,
                description=f"The most {kind} costs",
            )
        most = f"at most {connections(pollers)} of {self._database.max_connections}"
        CfnOutput(self, "Connections", value=most, description="Database connections of the functions")
        CfnOutput(self, "DeadLetters", value=self._schedules.queue.queue_url, description="Events that were dropped")


def identifier(name: str) -> str:
    """A kind's or poller's name as part of a construct's id: close_conversation is CloseConversation. Two names never
    give one id: an underscore that no letter follows stays."""
    parts = name.split("_")
    return parts[0].capitalize() + "".join(
        part.capitalize() if part[:1].isalpha() else f"_{part}" for part in parts[1:]
    )
