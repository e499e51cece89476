import json
import random
import re
import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

from stopline.errortext import clean
from stopline.failure import Failure
from stopline.fingerprint import fingerprint, normalise
from stopline.states import Outcome

# One fault to a group, as several jobs meet it.
_FILE = Path(__file__).with_name("fingerprint_corpus.json")
CORPUS = {
    group: (entry["error_class"], entry["texts"])
    for group, entry in json.loads(_FILE.read_text(encoding="utf-8")).items()
}

HOSTILE = (
    *("a", "1", "'", '"', "_", " ", ":", "a.", "1.", "a-1", "0x", "=(", "?a=", "a@a.", "<n>", "^\n", "/tmp/", '"a":"'),
    *("request id ", "2026-01-01", "status ", "relation ", 'File "/'),
)


def grouping_errors(name: Callable[[str, str], str]) -> tuple[list[str], list[tuple[str, str]]]:
    """Faults of a function that names (error class, text): groups it splits, and pairs of groups it merges."""
    names = {group: {name(kind, clean(text)) for text in texts} for group, (kind, texts) in CORPUS.items()}
    split = [group for group, found in names.items() if len(found) > 1]
    groups = list(names)
    merged = [(a, b) for i, a in enumerate(groups) for b in groups[i + 1 :] if names[a] & names[b]]
    return split, merged


def test_the_corpus_is_large_enough_to_mean_something() -> None:
    assert len(CORPUS) >= 20
    assert sum(len(set(texts)) for _, texts in CORPUS.values()) >= 60
    assert sum(len(set(texts)) > 1 for _, texts in CORPUS.values()) >= 20
    assert [group for group, (_, texts) in CORPUS.items() if len(set(texts)) < len(texts)] == []


def test_one_fault_has_one_fingerprint_and_different_faults_differ() -> None:
    assert grouping_errors(fingerprint) == ([], [])


def test_the_same_check_fails_a_fingerprint_that_sees_one_fault_or_only_different_ones() -> None:
    assert grouping_errors(lambda kind, text: "same")[1]
    assert grouping_errors(lambda kind, text: kind + text)[0]
    assert grouping_errors(lambda kind, text: kind)[1]


def test_a_fingerprint_is_sixteen_hexadecimal_digits() -> None:
    assert re.fullmatch(r"[0-9a-f]{16}", fingerprint("ValueError", "x"))
    assert re.fullmatch(r"[0-9a-f]{16}", fingerprint("", "\ud800"))


def test_a_failure_knows_its_fingerprint() -> None:
    failure = Failure(Outcome.TRANSIENT, "ValueError", "row 7 is bad")
    assert failure.fingerprint == fingerprint("ValueError", "row 8 is bad")


def test_the_class_tells_faults_apart() -> None:
    assert fingerprint("ValueError", "bad") != fingerprint("TypeError", "bad")


def test_ids_times_addresses_and_numbers_of_any_value_do_not_matter() -> None:
    text = "job {} of {} at {} from {} with digest {} failed"
    expected = normalise(text.format(uuid.UUID(int=7), 7, "2026-01-01T00:00:00", "10.0.0.1", "ff00ff00ff00"))
    for seed in range(200):
        chance = random.Random(seed)
        moment = datetime.fromtimestamp(chance.uniform(0, 4e9), UTC)
        number = chance.randrange(10 ** chance.randint(1, 12))
        address = ".".join(str(chance.randrange(256)) for _ in range(4))
        one = text.format(
            uuid.UUID(int=chance.getrandbits(128)),
            number,
            moment.isoformat(),
            address,
            chance.randbytes(chance.randint(8, 20)).hex(),
        )
        assert normalise(one) == expected, one


def test_hostile_text_is_normalised_in_bounded_time() -> None:
    """FI-02: a fingerprint of any text is made in bounded time."""
    for unit in HOSTILE:
        started = time.process_time()
        fingerprint("X", unit * (20_000 // len(unit)))
        assert time.process_time() - started < 1, unit
