"""What counts as a usable answer of the model."""

from collections.abc import Mapping
from typing import Any

from stopline import Permanent, Transient

_COMPLETE = frozenset({"end_turn", "stop_sequence"})
_SAME_AGAIN = frozenset({"content_filtered", "guardrail_intervened", "model_context_window_exceeded"})


def read_summary(response: Mapping[str, Any]) -> str:
    """The text of a complete answer.

    Raises Permanent where the same conversation would be refused again, Transient where another try may do better.
    """
    stop_reason = response.get("stopReason")
    if stop_reason in _SAME_AGAIN:
        raise Permanent(f"the model refused this conversation: stopReason {stop_reason}")
    if stop_reason not in _COMPLETE:
        raise Transient(f"the model's answer is not complete: stopReason {stop_reason}")
    # Models that think put their thoughts into blocks of another type.
    blocks = response["output"]["message"]["content"]
    text = _storable("\n".join(block["text"] for block in blocks if "text" in block))
    if not text:
        raise Transient(f"the model's answer has no text: stopReason {stop_reason}, {len(blocks)} content blocks")
    return text


def _storable(text: str) -> str:
    """Without what a text column cannot hold: NUL and lone surrogates."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode().strip()
