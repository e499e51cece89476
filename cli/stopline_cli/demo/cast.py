"""Who appears in the demo: one piece of work for every sample row that becomes a job, and the scripted ones."""

import json
from dataclasses import replace
from typing import Any

from stopline_cli.demo import scenario
from stopline_cli.demo.work import Origin, Work
from stopline_cli.local.prepare import SAMPLES

IDLE_MINUTES = 30
"""What the source of close_conversation takes for idle."""


def the_works() -> list[Work]:
    """Every job of the demo, by the sample files and the scenario."""
    conversations = _sample("conversations")
    sizes = {row["id"]: len(json.dumps(row["messages"], ensure_ascii=False).encode()) for row in conversations}
    idle = [
        _close(row["id"], sizes[row["id"]])
        for row in conversations
        if row["status"] == "open" and row["idle_minutes"] > IDLE_MINUTES
    ]
    killed = replace(scenario.KILLED, prompt_bytes=sizes[scenario.SILENT_LATER])
    invoices: dict[str, list[str]] = {}
    for row in _sample("invoices"):
        invoices.setdefault(row["batch"], []).append(row["id"])
    exports = [_export(batch, min(invoices[batch])) for batch in scenario.BATCHES]
    return [*idle, killed, scenario.BY_HAND, *exports]


def _close(conversation: int, size: int) -> Work:
    story, faults = scenario.CONVERSATIONS.get(conversation, ("", ()))
    return Work(scenario.CLOSE, f"conversation:{conversation}", str(conversation), story, faults, prompt_bytes=size)


def _export(batch: str, first_invoice: str) -> Work:
    script = scenario.BATCHES[batch]
    # The connector records a batch under its first invoice.
    return Work(
        scenario.EXPORT,
        f"batch:{batch}",
        first_invoice,
        script.story,
        script.faults,
        origin=Origin.EXPORT,
        lookups=script.lookups,
        deadline=script.deadline,
    )


def _sample(name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads((SAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return rows
