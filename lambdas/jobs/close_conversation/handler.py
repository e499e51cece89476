"""close_conversation: a model summarises an idle conversation, then the conversation is closed.

Two attempts at the same time, or one after a success that was never recorded, are harmless: a closed conversation is
left alone before the model is asked, and closing is one update that checks what was read.
"""

from typing import Any

from botocore.exceptions import ClientError

from stopline import Job, Permanent

from .answer import read_summary
from .conversations import Conversation, close, read
from .model import NOT_BILLED, Model
from .prompt import build_request


def run(job: Job) -> dict[str, object]:
    """Close the conversation that the payload names. Returns what was done and with which tokens."""
    model = Model.from_environment(job.environment)
    try:
        conversation = _find(job)
    except Permanent:
        _not_asked(job)
        raise
    if conversation.status != "open":
        _not_asked(job)
        return {"closed": False, "why": "it was closed already"}

    response = _converse(job, model, build_request(conversation))
    # Billed whatever the answer is worth, so the money is noted before the answer is judged.
    cost = model.cost(response.get("usage"))
    if cost is not None:
        job.cost(cost)
    summary = read_summary(response)

    with job.connect() as connection:
        closed = close(connection, conversation, summary)
    usage = response.get("usage") or {}
    result: dict[str, object] = {
        "closed": closed,
        "model": model.model_id,
        "input_tokens": usage.get("inputTokens"),
        "output_tokens": usage.get("outputTokens"),
    }
    return result if closed else result | {"why": "it changed while the model was asked"}


def _converse(job: Job, model: Model, request: dict[str, Any]) -> dict[str, Any]:
    # The metadata stands in Bedrock's invocation log: a line of the bill names the job and the attempt that caused it.
    metadata = {"stopline_kind": job.kind, "stopline_job": str(job.id), "stopline_attempt": str(job.attempt)}
    try:
        response: dict[str, Any] = job.client("bedrock-runtime").converse(
            modelId=model.model_id, requestMetadata=metadata, **request
        )
    except ClientError as error:
        if error.response.get("Error", {}).get("Code") in NOT_BILLED:
            job.cost(0)
        raise
    return response


def _find(job: Job) -> Conversation:
    conversation_id = _conversation_id(job.payload)
    with job.connect() as connection:
        conversation = read(connection, conversation_id)
    if conversation is None:
        raise Permanent(f"conversation {conversation_id} does not exist")
    return conversation


def _not_asked(job: Job) -> None:
    """The attempt ends before the model is asked: what was reserved for the call is not spent."""
    job.cost(0, calls=0)


def _conversation_id(payload: object) -> int:
    value = payload.get("conversation_id") if isinstance(payload, dict) else None
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**63:
        raise Permanent(f"payload.conversation_id: must be a conversation's number, not {value!r}")
    return value
