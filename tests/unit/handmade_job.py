"""A job made by hand, for running a kind's code against the stand-ins without a queue or a database."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

import boto3
from botocore.config import Config

JOBS = Path(__file__).resolve().parents[2] / "lambdas" / "jobs"
SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def kind_module(kind: str, module: str = "handler") -> Any:
    """A module of a kind's folder, imported as the worker imports it: as stopline_jobs.<kind>.<module>."""
    if "stopline_jobs" not in sys.modules:
        package = ModuleType("stopline_jobs")
        package.__path__ = [str(JOBS)]
        sys.modules["stopline_jobs"] = package
    return importlib.import_module(f"stopline_jobs.{kind}.{module}")


# One session: it loads the service model once, which takes longer than all else that a client needs.
_SESSION = boto3.session.Session(
    aws_access_key_id="AKIDEXAMPLE", aws_secret_access_key="not-a-secret", region_name="eu-central-1"
)


def bedrock_client(url: str, read_timeout: float = 10.0) -> Any:
    """An unmodified SDK client that sends one request per call."""
    return _SESSION.client(
        "bedrock-runtime",
        endpoint_url=url,
        config=Config(retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=read_timeout),
    )


@dataclass
class HandmadeJob:
    """What a kind's code sees of a job. `said` lists what it told the queue, in order."""

    payload: Any
    kind: str = "kind"
    id: int = 17
    attempt: int = 1
    effect_key: str = "5f0c-17"
    environment: Mapping[str, str] = field(default_factory=dict)
    bedrock_url: str = ""
    database: Any = None
    wire_seconds: float = 10.0
    said: list[tuple[str, object]] = field(default_factory=list)

    @property
    def spent(self) -> Decimal | None:
        """What was reported as cost, None if nothing was."""
        costs = [value for what, value in self.said if what == "cost"]
        return sum((Decimal(str(cost)) for cost in costs), Decimal(0)) if costs else None

    def client(self, service: str) -> Any:
        assert service == "bedrock-runtime"
        return bedrock_client(self.bedrock_url, self.wire_seconds)

    @contextmanager
    def connect(self) -> Iterator[Any]:
        yield self.database

    def effect(self) -> None:
        self.said.append(("effect", None))

    def cost(self, usd: object, calls: int = 1) -> None:
        self.said.append(("cost", usd))

    def timeout_for_wire(self) -> float:
        return self.wire_seconds
