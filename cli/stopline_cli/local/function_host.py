"""The inside of a local function: what the Lambda runtime does, over two pipes. Started by `functions.py`, by path.

It imports the standard library only and starts no thread, so the handler finds the process as Lambda would give it:
stdout and stderr are its log, and it may fork.
"""

import importlib.util
import json
import os
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

Handler = Callable[[Any, Any], Any]


class Context:
    """What a handler gets as its second argument. `deadline` is in seconds of the system's monotonic clock."""

    function_version = "$LATEST"
    identity = None
    client_context = None

    def __init__(self, request_id: str, deadline: float) -> None:
        self.aws_request_id = request_id
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self.invoked_function_arn = f"arn:aws:lambda:local:000000000000:function:{self.function_name}"
        self._deadline = deadline

    def get_remaining_time_in_millis(self) -> int:
        """Milliseconds until the invocation is killed; 0 once that time has passed."""
        return max(0, int((self._deadline - time.monotonic()) * 1000))


def load(file: Path, function: str) -> Handler:
    """Imports the handler's file with its folder on the path, as Lambda does with the function's package."""
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"{file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    handler: Handler = getattr(module, function)
    return handler


def failure(error: BaseException) -> dict[str, object]:
    """An exception as the runtime reports it."""
    trace = "".join(traceback.format_exception(error))
    return {"error": {"type": type(error).__name__, "message": str(error), "trace": trace}}


def answer(handler: Handler, request: dict[str, Any]) -> str:
    """Calls the handler once. The answer is one line of JSON whatever happens."""
    try:
        result = handler(request["event"], Context(request["request_id"], request["deadline"]))
        return json.dumps({"result": result})
    except Exception as error:
        return json.dumps(failure(error))


def serve(requests: int, answers: int, file: str, function: str) -> None:
    """Answers one JSON line with one JSON line until the other side closes."""
    with os.fdopen(requests, "r") as incoming, os.fdopen(answers, "w") as outgoing:

        def reply(line: str) -> None:
            sys.stdout.flush()
            sys.stderr.flush()
            outgoing.write(line + "\n")
            outgoing.flush()

        try:
            handler = load(Path(file), function)
        except Exception as error:
            reply(json.dumps(failure(error)))
            return
        reply(json.dumps({"result": "ready"}))
        for line in incoming:
            reply(answer(handler, json.loads(line)))


if __name__ == "__main__":
    # The folder of this file must not shadow what the handler imports.
    sys.path.pop(0)
    serve(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3], sys.argv[4])
