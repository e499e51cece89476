"""A kind's policy: everything that its `policy.toml` says, typed."""

# ruff: noqa: RUF009 - `key` and `section` declare dataclass fields, as `dataclasses.field` does

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from stopline.limits import PAYLOAD_BYTES
from stopline.policy.keys import declared_keys, key, section
from stopline.policy.sections import (
    OWN_POLLER,
    Access,
    Agent,
    Alarms,
    Breaker,
    Cost,
    Enqueue,
    Limits,
    Reconcile,
    Retention,
    Retry,
    Run,
    Source,
)
from stopline.policy.values import Choice, Flag, Size, Text


@dataclass(frozen=True, kw_only=True)
class Policy:
    """Everything that a kind's `policy.toml` says, with its defaults. Durations are timedeltas, money is Decimal."""

    name: str
    owner: str = key(Text(), "Who answers for the kind: a team or a person.")
    description: str = key(Text(longest=500), "What a job of this kind does, in a line.")
    idempotent: bool = key(Flag(), "Whether repeating an attempt that may have had its effect is harmless.")
    effect: str = key(
        Choice(("whole_attempt", "stamped")),
        "When the effect may happen: at any time in the attempt, or only after `job.effect()`.",
        default="whole_attempt",
    )
    hold_key: bool = key(Flag(), "Whether stopped jobs go on holding their key.", default=True)
    max_payload: int = key(Size(PAYLOAD_BYTES), "The largest payload of a job.", default=PAYLOAD_BYTES)
    limits: Limits = section(Limits)
    retry: Retry = section(Retry)
    run: Run = section(Run)
    access: Access = section(Access)
    cost: Cost = section(Cost)
    agent: Agent = section(Agent)
    reconcile: Reconcile = section(Reconcile)
    source: Source = section(Source)
    enqueue: Enqueue = section(Enqueue)
    breaker: Breaker = section(Breaker)
    alarms: Alarms = section(Alarms)
    retention: Retention = section(Retention)
    reconciles: bool = False
    """Whether the kind's code can ask its receiver. No key of the file: it is read from handler.py."""
    file: str = field(default="", compare=False)
    declared: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)
    """The file as it was written, before defaults: what `overlay` changes."""

    @property
    def lease(self) -> timedelta:
        """How long a claim of one job holds."""
        return self.run.timeout + self.run.margin

    @property
    def poller_name(self) -> str:
        """The poller that runs the kind."""
        return self.name if self.run.poller == OWN_POLLER else self.run.poller

    def to_row(self) -> dict[str, object]:
        """The columns of `stopline.kind`, ready for JSON: durations in seconds, money as text."""
        row: dict[str, object] = {"name": self.name, "reconciles": self.reconciles}
        for declared in declared_keys(Policy):
            if declared.column is not None:
                value = self.value(declared.section, declared.attribute)
                row[declared.column] = None if value is None else declared.type.to_row(value)
        return row

    def value(self, section_name: str, attribute: str) -> Any:
        """The value of a key by its section ("" for those above all sections) and name."""
        return getattr(getattr(self, section_name) if section_name else self, attribute)
