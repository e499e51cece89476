"""What one attempt makes of each fault, written down from what the services' documents and the kinds promise.

Deliberately not asked of `stopline.classify` or of a handler: the demo exists to catch them out.
"""

from dataclasses import dataclass
from enum import Enum, auto

from stopline.states import Outcome
from stopline_cli.demo.scenario import CLOSE, EXPORT
from stopline_cli.demo.work import Fault


class Billed(Enum):
    """What an attempt costs: nothing, its tokens, or its reservation because nobody knows better."""

    NOTHING = auto()
    TOKENS = auto()
    RESERVATION = auto()


@dataclass(frozen=True, slots=True)
class Reaction:
    """How an attempt ends. `outcome` None: sent, and the answer was lost. `taken`: the receiver has done the work.
    `says` must stand in the recorded error: a stop that cannot be explained is half a stop."""

    outcome: Outcome | None
    says: str = ""
    billed: Billed = Billed.RESERVATION
    taken: bool = False
    sent: bool = True


FINE = Reaction(Outcome.SUCCEEDED, "", Billed.TOKENS, taken=True)
KILLED = Reaction(Outcome.CRASHED, "SIGKILL", taken=True)
REFUSED_UNSENT = Reaction(Outcome.PERMANENT, "conversation_id", Billed.NOTHING, sent=False)

_LOST = None
_AGAIN = Outcome.TRANSIENT
_NEVER = Outcome.PERMANENT
_TIMED_OUT = "ReadTimeoutError"
_BEDROCK = {
    "throttle": Reaction(_AGAIN, "ThrottlingException", Billed.NOTHING),
    "unavailable": Reaction(_AGAIN, "ServiceUnavailableException"),
    "empty": Reaction(_AGAIN, "no text", Billed.TOKENS, taken=True),
    "cut": Reaction(_AGAIN, "max_tokens", Billed.TOKENS, taken=True),
    "filtered": Reaction(_NEVER, "content_filtered", Billed.TOKENS, taken=True),
    "hang": Reaction(_LOST, _TIMED_OUT, taken=True),
    "drop": Reaction(_LOST, "ConnectionClosedError", taken=True),
    "trickle": Reaction(Outcome.TIMEOUT, "Timeout", taken=True),
}
_BEDROCK_ERRORS = {
    "AccessDeniedException": (_AGAIN, Billed.NOTHING),
    "InternalServerException": (_LOST, Billed.RESERVATION),
    "ModelErrorException": (_AGAIN, Billed.RESERVATION),
    "ModelNotReadyException": (_AGAIN, Billed.NOTHING),
    "ModelTimeoutException": (_AGAIN, Billed.RESERVATION),
    "ResourceNotFoundException": (_NEVER, Billed.NOTHING),
    "ServiceUnavailableException": (_AGAIN, Billed.RESERVATION),
    "ThrottlingException": (_AGAIN, Billed.NOTHING),
    "ValidationException": (_NEVER, Billed.NOTHING),
}
_CONNECTOR = {
    "throttle": Reaction(_AGAIN, "429"),
    "unavailable": Reaction(_AGAIN, "503"),
    "server_error": Reaction(_LOST, "500"),
    "reject": Reaction(_NEVER, "422"),
    "hang": Reaction(_LOST, _TIMED_OUT),
    "drop": Reaction(_LOST, "ProtocolError"),
    "accept_then_hang": Reaction(_LOST, _TIMED_OUT, taken=True),
    "accept_then_drop": Reaction(_LOST, "ProtocolError", taken=True),
}


def reaction(kind: str, fault: Fault | None) -> Reaction:
    """What an attempt of this kind makes of a fault. KeyError for one that the kind's service does not have."""
    if fault is None:
        return FINE
    if kind == CLOSE and fault.fault == "error":
        name = fault.error or "InternalServerException"
        outcome, billed = _BEDROCK_ERRORS[name]
        return Reaction(outcome, name, billed)
    return {CLOSE: _BEDROCK, EXPORT: _CONNECTOR}[kind][fault.fault]
