"""Stand-in for Amazon Bedrock's Converse (POST /model/{modelId}/converse), for an unmodified AWS SDK:
AWS_ENDPOINT_URL_BEDROCK_RUNTIME=http://127.0.0.1:<port>, any credentials, any region.

Shapes and status codes are those of the service model that botocore ships (bedrock-runtime 2023-09-30, REST-JSON: the
error's name travels in the header x-amzn-ErrorType). A request's marker is the conversation id in its prompt
("conversation_id": 1004). Faults:

    throttle     429 ThrottlingException, with `retry_after` as a Retry-After header if given
    unavailable  503 ServiceUnavailableException, likewise
    error        the exception named by `error`, e.g. "ModelErrorException" (424), with its own status
    empty        200: the model ran and is billed, and its text is empty
    cut          200: the model ran and is billed, and stopped at max_tokens
    filtered     200: the model ran and is billed, and its text was filtered
    trickle      200, and a body that never ends; the model ran and is billed
    hang         no answer until the client gives up; the model ran and is billed
    drop         the connection is closed without an answer; the model ran and is billed

`answer` replaces the text of an answer that has one.
"""

import json
import re
import time
import uuid
from typing import Any
from urllib.parse import unquote

from stopline_cli.standins.ledger import Call
from stopline_cli.standins.process import main
from stopline_cli.standins.script import EVERY_MARKER, Step
from stopline_cli.standins.service import (
    Answer,
    Drop,
    Reply,
    Request,
    Service,
    Silence,
    Trickle,
    closed,
    retry_after_header,
)

ERRORS = {
    "AccessDeniedException": (403, "You don't have access to the model with the specified model ID."),
    "InternalServerException": (500, "The system encountered an unexpected error during processing."),
    "ModelErrorException": (424, "The model failed while it processed this request."),
    "ModelNotReadyException": (429, "The model is not ready to serve requests yet."),
    "ModelTimeoutException": (408, "The model took too long to process this request."),
    "ResourceNotFoundException": (404, "Could not resolve the foundation model from the model identifier."),
    "ServiceUnavailableException": (503, "Bedrock is unable to process your request."),
    "ThrottlingException": (429, "Too many requests, please wait before trying again."),
    "ValidationException": (400, "The request is malformed."),
}
_REFUSALS = {
    "throttle": "ThrottlingException",
    "unavailable": "ServiceUnavailableException",
    "error": "InternalServerException",
}
_PATH = re.compile(r"/model/([^/]+)/converse")
_CONVERSATION = re.compile(r"conversation_id\"?\s*[:=]\s*\"?([\w-]+)")


class BedrockService(Service):
    """Converse, and nothing else of Bedrock."""

    faults = frozenset({*_REFUSALS, "empty", "cut", "filtered", "trickle", "hang", "drop"})

    def handle(self, request: Request) -> Answer:
        """Answer one Converse request."""
        started = time.monotonic()
        path = _PATH.fullmatch(request.path)
        if request.method != "POST" or path is None:
            return _error("ResourceNotFoundException", f"No such operation: {request.method} {request.path}")
        prompt, problem = _prompt(request.body)
        marker = _marker(prompt)
        call = self.ledger.open("converse", marker, model_id=unquote(path[1]), metadata=_metadata(request.body))
        if "authorization" not in request.headers:
            return closed(call, _error("AccessDeniedException", "Missing Authentication Token"))
        if problem:
            return closed(call, _error("ValidationException", problem))
        step = self.script.take([marker, EVERY_MARKER])
        return self._perform(call, step, prompt, started)

    def _perform(self, call: Call, step: Step | None, prompt: str, started: float) -> Answer:
        fault = step.fault if step else None
        call.fault = fault
        if step and fault in _REFUSALS:
            name = step.error or _REFUSALS[fault]
            return closed(call, _error(name, retry_after=step.retry_after))
        call.accepted = True
        if step and fault == "hang":
            return Silence() if step.seconds is None else Silence(step.seconds)
        if fault == "trickle":
            return Trickle()
        if fault == "drop":
            return Drop()
        text = step.answer if step and step.answer is not None else _summary(call.marker)
        stop_reason = {"cut": "max_tokens", "filtered": "content_filtered"}.get(fault or "", "end_turn")
        if fault in ("empty", "filtered"):
            text = ""
        return closed(call, _answer(text, stop_reason, prompt, started))


def _prompt(body: bytes) -> tuple[str, str | None]:
    """All text of the request, and what is wrong with the request if something is."""
    try:
        request = json.loads(body)
        messages = request["messages"]
        texts = [block["text"] for block in request.get("system", [])]
        texts += [block["text"] for message in messages for block in message["content"]]
        roles = [message["role"] for message in messages]
        prompt = "\n".join(texts)
    except (ValueError, KeyError, TypeError, AttributeError):
        return "", "The request needs messages with a role and content blocks of text."
    if not all(text.strip() for text in texts):
        return prompt, "The text field in the content blocks must not be blank."
    if not roles or roles[0] != "user":
        return prompt, "A conversation must start with a user message."
    if any(role != ("user", "assistant")[position % 2] for position, role in enumerate(roles)):
        return prompt, "Roles must alternate between user and assistant."
    return prompt, None


def _marker(prompt: str) -> str:
    found = _CONVERSATION.search(prompt)
    return found[1] if found else "unknown"


def _metadata(body: bytes) -> dict[str, Any]:
    try:
        metadata = json.loads(body).get("requestMetadata")
    except (ValueError, AttributeError):
        return {}
    return metadata if isinstance(metadata, dict) else {}


def _summary(marker: str) -> str:
    return (
        f"Conversation {marker}: the customer described a problem and the agent explained the cause and the remedy. "
        "The customer confirmed that nothing else is needed. No promise to the customer is open."
    )


def _answer(text: str, stop_reason: str, prompt: str, started: float) -> Reply:
    # About four bytes of text make a token; exact counts need the model's own tokenizer.
    tokens_in = -(-len(prompt.encode("utf-8", "replace")) // 4)
    tokens_out = max(1, -(-len(text.encode()) // 4))
    body = {
        "output": {"message": {"role": "assistant", "content": [{"text": text}]}},
        "stopReason": stop_reason,
        "usage": {"inputTokens": tokens_in, "outputTokens": tokens_out, "totalTokens": tokens_in + tokens_out},
        "metrics": {"latencyMs": round((time.monotonic() - started) * 1000)},
    }
    return Reply(200, body, {"x-amzn-RequestId": str(uuid.uuid4())})


def _error(name: str, message: str | None = None, *, retry_after: float | None = None) -> Reply:
    status, usual = ERRORS.get(name, (500, "The system encountered an unexpected error during processing."))
    headers = {"x-amzn-RequestId": str(uuid.uuid4()), "x-amzn-ErrorType": f"{name}:http://internal.amazon.com/coral/"}
    return Reply(status, {"message": message or usual}, headers | retry_after_header(retry_after))


if __name__ == "__main__":
    main(BedrockService())
