"""Invokes several functions side by side, a thread each, and lets the caller do things meanwhile."""

import threading
from collections.abc import Callable, Sequence
from typing import Any

from stopline_cli.errors import CommandError
from stopline_cli.local.functions import FunctionFailed, FunctionProcess
from stopline_cli.local.processes import kill_tree
from stopline_cli.local.schedule import Answer

LOOK_SECONDS = 0.03


def invoke_together(functions: Sequence[FunctionProcess], meanwhile: Callable[[], object]) -> list[Answer]:
    """The answers in the functions' order. `meanwhile` is called every few hundredths of a second until all are there;
    if it raises, the functions are killed and the error goes on."""
    answers: dict[int, Answer] = {}

    def invoke(place: int, function: FunctionProcess) -> None:
        try:
            answers[place] = function.invoke({})
        except FunctionFailed as failed:
            answers[place] = failed

    threads = [threading.Thread(target=invoke, args=item, daemon=True) for item in enumerate(functions)]
    for thread in threads:
        thread.start()
    try:
        while any(thread.is_alive() for thread in threads):
            meanwhile()
            for thread in threads:
                thread.join(LOOK_SECONDS)
    except BaseException:
        for function in functions:
            if function.pid is not None:
                kill_tree(function.pid)
        raise
    finally:
        for thread in threads:
            thread.join()
    return [answers[place] for place in range(len(functions))]


def results(functions: Sequence[FunctionProcess], meanwhile: Callable[[], object]) -> list[dict[str, Any]]:
    """Invokes them together. CommandError for the first that failed."""
    return [_succeeded(answer) for answer in invoke_together(functions, meanwhile)]


def _succeeded(answer: Answer) -> dict[str, Any]:
    if isinstance(answer, FunctionFailed):
        raise CommandError(f"function {answer.name}", f"failed: {answer.error_type}: {answer.message}", "see above")
    return answer
