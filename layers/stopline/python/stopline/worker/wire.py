"""SDK clients and wire timeouts for an attempt: one request on the wire, and an end before the attempt's own."""

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from stopline.errors import Refused

CONNECT_SECONDS = 5.0
_SHORTEST = 0.05


@dataclass(frozen=True, slots=True)
class WireTimeouts:
    """Seconds to give an HTTP client."""

    connect: float
    read: float


def wire_timeouts(seconds_left: float) -> WireTimeouts:
    """Timeouts that together end before `seconds_left`, with time to report what happened."""
    left = max(seconds_left, 0.0)
    connect = min(CONNECT_SECONDS, left / 4)
    spare = max(0.25, left / 20)
    return WireTimeouts(max(connect, _SHORTEST), max(left - connect - spare, _SHORTEST))


class ClientShelf:
    """Builds boto3 clients from one session.

    The first client of a service costs a session its service model (155 ms for bedrock-runtime), every further one
    under 2 ms. So the supervisor warms the services that its children used, and each child builds its own client,
    unconnected and with timeouts that fit the time it has left.
    """

    def __init__(self, region: str | None) -> None:
        self._region = region
        self._session: Any = None
        self._wanted: set[str] = set()
        self._loaded: set[str] = set()

    def want(self, services: Iterable[str]) -> None:
        """Remembers services that a child has used."""
        self._wanted.update(services)

    def warm(self) -> bool:
        """Loads what clients of the wanted services share. Says whether anything was loaded."""
        fresh = self._wanted - self._loaded
        for service in sorted(fresh):
            # A child meets the same error, and there it has a job to be reported for.
            with suppress(Exception):
                self._load(service)
            self._loaded.add(service)
        return bool(fresh)

    def client(self, service: str, seconds_left: Callable[[], float]) -> Any:
        """A client of `service` that sends one request per call and gives up before `seconds_left` have passed."""
        if service not in self._loaded:
            self._load(service)
        # Asked only now: loading may have taken a good part of the time.
        return self._build(service, wire_timeouts(seconds_left()))

    def _load(self, service: str) -> None:
        self._build(service, WireTimeouts(CONNECT_SECONDS, CONNECT_SECONDS))
        self._loaded.add(service)

    def _build(self, service: str, timeouts: WireTimeouts) -> Any:
        session = self._sdk_session()
        from botocore.config import Config

        config = Config(
            retries={"total_max_attempts": 1, "mode": "standard"},
            connect_timeout=timeouts.connect,
            read_timeout=timeouts.read,
        )
        return session.client(service, config=config)

    def _sdk_session(self) -> Any:
        if self._session is None:
            try:
                import boto3
            except ImportError as error:
                raise Refused(f"job.client: boto3 is not installed ({error}). Lambda's runtime has it") from None
            self._session = boto3.session.Session(region_name=self._region)
        return self._session
