"""What the demo lets go wrong, as plain data. What must come of it is worked out in `expect`, not written here."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from stopline_cli.demo.work import Fault, Origin, Work

CLOSE = "close_conversation"
EXPORT = "accounting_export"

INTRODUCTION = (
    "A job that closes conversations with an AI model cannot finish one of them.",
    "In the incident a poller called the model for it every minute, and paid each",
    "time. Here it has a stop line. The database, the functions and the wire",
    "protocols are real, the faults are scripted, and the clock jumps to whatever is",
    "due next.",
    "",
)

OVERLAY: Mapping[str, Mapping[str, Any]] = {
    CLOSE: {"run": {"timeout": "5s"}, "retention": {"succeeded": "730d"}},
    EXPORT: {"run": {"timeout": "5s"}, "retention": {"succeeded": "730d"}},
}
"""Changes to the shipped policies. The timeout of an attempt passes in real time, unlike everything else, and whoever
looks at the database after the demo's year should find all jobs."""

CONVERSATIONS: Mapping[int, tuple[str, tuple[Fault, ...]]] = {
    1004: ("throttled twice, then fine", (Fault("throttle", times=2, retry_after=1500),)),
    1008: ("the incident: the model answers nothing, and bills for it", (Fault("empty"),)),
    1012: ("the model fails on it every time", (Fault("error", error="ModelErrorException"),)),
    1015: ("the model does not answer once", (Fault("hang", times=1),)),
    1019: ("an answer trickles in without an end, every time", (Fault("trickle"),)),
}
"""By conversation, of those that are idle at the start: what happens to it and its faults. All others go well."""

INCIDENT = "conversation:1008"
YEAR = timedelta(days=365)
"""From the demo's start."""

SILENT_LATER = 1022
SILENT_AFTER_MINUTES = 1
KILLED = Work(
    CLOSE,
    f"conversation:{SILENT_LATER}",
    str(SILENT_LATER),
    "silent a minute later; its process is killed in mid-call",
    (Fault("hang", times=1),),
    origin=Origin.SILENT_LATER,
    killed_in_call=1,
)
"""A conversation whose first attempt is killed. It comes alone, so that its poller has only that one child."""

BY_HAND = Work(
    CLOSE, "conversation:legacy-7", None, "enqueued by hand under an id that is no number", origin=Origin.BY_HAND
)
BY_HAND_PAYLOAD = {"conversation_id": "legacy-7"}


@dataclass(frozen=True, slots=True)
class Script:
    """What happens to a batch of invoices: the faults of its sends and of the questions about it, and its deadline."""

    story: str
    faults: tuple[Fault, ...] = ()
    lookups: tuple[Fault, ...] = ()
    deadline: timedelta | None = None


BATCHES: Mapping[str, Script] = {
    "north-w48": Script("goes well"),
    "south-w48": Script("taken, but the answer never comes", (Fault("accept_then_hang", times=1),)),
    "isles-w48": Script("unavailable once, then fine", (Fault("unavailable", times=1, retry_after=240),)),
    "credit-w48": Script("rejected as invalid", (Fault("reject"),)),
    "fells-w48": Script(
        "sent, the answer is lost, and the connector cannot say either",
        (Fault("accept_then_drop", times=1),),
        lookups=(Fault("unavailable"),),
    ),
    "close-w48": Script(
        "the books close in 20 minutes, and the connector is away for 30",
        (Fault("unavailable", times=1, retry_after=1800),),
        deadline=timedelta(minutes=20),
    ),
}
"""By batch."""

OUTAGE_BATCHES: Mapping[str, Script] = {
    f"{name}-w49": Script("handed over while the connector is away")
    for name in ("north", "south", "isles", "credit", "fells", "close", "coast")
}
"""What is due in the outage, which meets all of it alike: the connector answers 503 to everything."""
OUTAGE = timedelta(hours=2)
