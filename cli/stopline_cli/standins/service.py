"""What a stand-in answers, apart from how HTTP carries it."""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from stopline_cli.standins.ledger import Call, Ledger
from stopline_cli.standins.script import Script


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. Header names are in lower case, the path is as it was sent, without the query."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True)
class Reply:
    """A JSON answer."""

    status: int
    body: object
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Silence:
    """No answer: the connection stays open until the client gives up, the stand-in stops, or `seconds` have passed."""

    seconds: float = 900.0


@dataclass(frozen=True, slots=True)
class Trickle:
    """An answer that begins and never ends: a byte every fifth of a second, so that no read timeout ever strikes."""

    status: int = 200
    seconds: float = 900.0


@dataclass(frozen=True, slots=True)
class Drop:
    """No answer: the connection is closed at once."""


Answer = Reply | Silence | Trickle | Drop


class Service(ABC):
    """A service with its own script and ledger. Subclasses know the wire protocol."""

    faults: frozenset[str]

    def __init__(self) -> None:
        self.script = Script(self.faults)
        self.ledger = Ledger()

    @abstractmethod
    def handle(self, request: Request) -> Answer:
        """Answer one request and record it in the ledger. Called from many threads."""

    def state(self) -> dict[str, Any]:
        """What GET /_calls shows."""
        return self.ledger.as_json()

    def reset(self) -> None:
        """Forget calls and effects and start the script again."""
        self.ledger.clear()
        self.script.rewind()


def closed(call: Call, reply: Reply) -> Reply:
    """Note in the call how it is answered, then answer."""
    call.status = reply.status
    return reply


def retry_after_header(seconds: float | None) -> dict[str, str]:
    """The Retry-After header in whole seconds, which is all that HTTP allows; none for None."""
    return {} if seconds is None else {"Retry-After": str(math.ceil(seconds))}
