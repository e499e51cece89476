"""The job as a kind's handler sees it."""

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from decimal import ROUND_UP, Decimal, InvalidOperation
from typing import Any

import psycopg

from stopline.errors import Permanent, Refused, Transient
from stopline.limits import CHECKPOINT_BYTES
from stopline.payload import decode, encode_payload
from stopline.states import StopReason
from stopline.store.connection import connect
from stopline.store.target import Target
from stopline.store.worker import ClaimedJob
from stopline.worker.ledger import MOST_USD, Ledger
from stopline.worker.wire import ClientShelf, wire_timeouts

_MICRO_USD = Decimal("0.000001")


class StepLimit(Permanent):
    """The agent has taken all the steps that its policy allows: the job stops as step_limit."""

    stop_reason = StopReason.STEP_LIMIT


@dataclass(frozen=True, slots=True)
class Tools:
    """What the jobs of one kind share in one process. `target` is the kind's own database role, if it has one."""

    clients: ClientShelf
    target: Target | None
    environment: Mapping[str, str]


class Job:
    """One attempt of one job. `payload` is what was enqueued, `checkpoint` what was last saved, or None.

    `effect_key` is the reference to hand to a receiver: the same in every attempt and replay of the job.
    """

    __slots__ = (
        "_calls",
        "_ends",
        "_ledger",
        "_tools",
        "_usd",
        "attempt",
        "attempts_left",
        "checkpoint",
        "deadline_at",
        "effect_key",
        "id",
        "key",
        "kind",
        "payload",
    )

    def __init__(self, claimed: ClaimedJob, ledger: Ledger, tools: Tools, ends: float) -> None:
        self.id: int = claimed.id
        self.kind: str = claimed.kind
        self.key: str | None = claimed.key
        self.payload: Any = claimed.payload
        self.effect_key: str = claimed.effect_key
        self.attempt: int = claimed.attempt
        self.attempts_left: int = claimed.attempts_left
        self.checkpoint: Any = claimed.checkpoint
        self.deadline_at: str | None = claimed.deadline_at
        self._ledger = ledger
        self._tools = tools
        self._ends = ends
        self._usd: Decimal | None = None
        self._calls = 0

    def __repr__(self) -> str:
        return f"<Job {self.id} of kind {self.kind}, attempt {self.attempt}>"

    def seconds_left(self) -> float:
        """Seconds until this attempt is killed; never below 0."""
        return max(self._ends - time.monotonic(), 0.0)

    def timeout_for_wire(self) -> float:
        """Seconds to give an HTTP client for an answer, so that it gives up before the attempt does."""
        return wire_timeouts(self.seconds_left()).read

    @property
    def environment(self) -> Mapping[str, str]:
        """The kind's environment: [access].environment of its policy, and what the platform sets."""
        return self._tools.environment

    def client(self, service: str) -> Any:
        """A boto3 client that sends one request per call, with timeouts that fit the time left now.

        It costs some milliseconds: ask for a new one before a call made long after this one.
        """
        client = self._tools.clients.client(service, self.seconds_left)
        self._ledger.used_client(service)
        return client

    @contextmanager
    def connect(self) -> Iterator["psycopg.Connection"]:
        """The application's database, as the kind's own role, in one transaction: committed on a clean exit.

        It is a connection of its own, never the queue's. Raises Refused when the kind has no role.
        """
        target = self._tools.target
        if target is None:
            raise Refused(
                f"kind {self.kind}: job.connect() needs the kind's database role. Set [access] database_role in its "
                f"policy.toml; its poller then gets it as STOPLINE_ROLE_{self.kind.upper()}"
            )
        with connect(replace(target, application_name=f"stopline-job-{self.kind}"), autocommit=False) as connection:
            yield connection

    def effect(self) -> None:
        """Call just before sending what cannot be taken back; returns when the database has the stamp.

        Raises LeaseLost when a newer attempt holds the job: then nothing may be sent.
        """
        self._ledger.start_effect()

    def save_checkpoint(self, value: Any) -> None:
        """Saves a JSON value that later attempts find as `checkpoint`. Raises InvalidInput or LeaseLost."""
        text = encode_payload(value, CHECKPOINT_BYTES, "checkpoint")
        self._ledger.save_checkpoint(text)
        self.checkpoint = decode(text)

    def cost(self, usd: Decimal | float | int | str, calls: int = 1) -> None:
        """Adds to what this attempt has cost, in USD. A value that is no amount is noted in the log, not raised."""
        amount = _amount(usd)
        if amount is None or not _is_count(calls):
            self._ledger.note(
                f"job.cost ignored: usd={_short(usd)} calls={_short(calls)} is not an amount from 0 and a whole number"
            )
            return
        self._usd = min((Decimal(0) if self._usd is None else self._usd) + amount, MOST_USD)
        self._calls += calls
        self._ledger.report_cost(self._usd, self._calls)

    def steps(self) -> Iterator[int]:
        """Counts an agent's steps: take the next number before each one.

        Raises StepLimit at the policy's limit, Transient when the job's money is used up, LeaseLost.
        """
        number = 0
        while True:
            status = self._ledger.count_step()
            if status == "step_limit":
                raise StepLimit(f"the step limit of kind {self.kind} is reached after {number} steps in this attempt")
            if status != "ok":
                raise Transient(f"no money is left for another step of this job ({status}) after {number} steps")
            number += 1
            yield number


def _amount(usd: object) -> Decimal | None:
    if isinstance(usd, bool):
        return None
    try:
        amount = Decimal(str(usd))
        if not amount.is_finite() or not 0 <= amount <= MOST_USD:
            return None
        return amount.quantize(_MICRO_USD, rounding=ROUND_UP)
    except (InvalidOperation, ValueError, ArithmeticError):
        return None
    except Exception:  # a __str__ that raises
        return None


def _is_count(calls: object) -> bool:
    return isinstance(calls, int) and not isinstance(calls, bool) and 0 <= calls <= 1_000_000


def _short(value: object) -> str:
    try:
        return repr(value)[:80]
    except Exception:
        return f"<{type(value).__name__}>"
