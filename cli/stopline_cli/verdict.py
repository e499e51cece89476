"""One bug, five bugs, or one thing upstream: what a batch of stopped jobs says in one line. Pure."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from stopline_cli.words import counted

MOSTLY = 0.8
"""The share of all jobs from which on one fault is the story and the others are beside it."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """`faults` are the distinct fingerprints (a stop reason stands for jobs that no error stopped); `largest` are the
    jobs of the most frequent one, and `largest_kinds` the kinds that they are of."""

    jobs: int
    kinds: int
    faults: int
    largest: int
    largest_kinds: list[str]
    line: str


def verdict(groups: Sequence[Mapping[str, Any]]) -> Verdict:
    """The verdict on groups as `UpkeepStore.reasons` gives them."""
    jobs: dict[tuple[str, str], int] = defaultdict(int)
    kinds: dict[tuple[str, str], set[str]] = defaultdict(set)
    for group in groups:
        # The same fault is the same fault, whichever limit it ran into.
        fault = ("fingerprint", group["fingerprint"]) if group["fingerprint"] else ("stop reason", group["stop_reason"])
        jobs[fault] += group["jobs"]
        kinds[fault].add(group["kind"])
    total = sum(jobs.values())
    every_kind = {group["kind"] for group in groups}
    if not jobs:
        return Verdict(0, 0, 0, 0, [], "No job is abandoned.")
    top = max(jobs, key=lambda fault: jobs[fault])
    found = sorted(kinds[top])
    said = _line(top[0], jobs[top], total, found, len(jobs), len(every_kind))
    return Verdict(total, len(every_kind), len(jobs), jobs[top], found, said)


def _line(noun: str, largest: int, total: int, kinds: list[str], faults: int, every_kind: int) -> str:
    if total == 1:
        return f"One job of kind {kinds[0]} is abandoned."
    if largest < MOSTLY * total:
        each = "each has one of its own" if faults == total else f"the largest is of {counted(largest, 'job')}"
        of = f"{total} jobs of {counted(every_kind, 'kind')}"
        return f"{of} have {counted(faults, 'fault')}, and {each}: {faults} things to look at, not one."
    share = f"All {total}" if largest == total else f"{largest} of {total}"
    line = f"{share} jobs of {counted(len(kinds), 'kind')} share one {noun}: {_likely(noun, kinds)}."
    rest = faults - 1
    return line if not rest else f"{line} The other {counted(total - largest, 'job')}: {counted(rest, 'fault')}."


def _likely(noun: str, kinds: list[str]) -> str:
    if noun == "stop reason":
        return "no error stopped them, a limit did"
    if len(kinds) > 1:
        return "one thing upstream of these kinds"
    return f"one bug, or one thing that only {kinds[0]} uses"
