"""JSON that goes into the database and comes back: payloads, checkpoints, results, keys and times.

PostgreSQL's jsonb refuses some of what Python's json writes (NaN, NUL, half an emoji) and stores some of what Python
cannot read back. All of it is refused here, before any SQL runs, with the place and the rule.
"""

import json
import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NoReturn

from stopline.errors import InvalidInput
from stopline.errortext import clean
from stopline.limits import KEY_BYTES, RESULT_BYTES

MAX_DEPTH = 100
"""Lists and objects inside one another. Every JSON reader on the way can follow this many."""

_LARGEST_INT = 10**308
_LONG_DIGITS = re.compile(r"\d{309}")
_EXPONENT = re.compile(r"\de[+-]?\d", re.IGNORECASE)
_NAME = re.compile(r"[A-Za-z_]\w{0,59}", re.ASCII)
_YEARS = range(2000, 9999)
_WHY_BYTES = 500
_NON_FINITE = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}

_FIXES = {
    "datetime": "use .isoformat() of a time with a zone",
    "date": "use .isoformat()",
    "timedelta": "use .total_seconds()",
    "Decimal": "use str() to keep it exact",
    "UUID": "use str()",
    "bytes": "use base64 text or store it elsewhere and pass a reference",
    "set": "use sorted(...)",
    "frozenset": "use sorted(...)",
}


def encode_payload(value: object, max_bytes: int, field: str = "payload") -> str:
    """The JSON text of a value, or `InvalidInput` naming the place in it and the rule that it breaks.

    `max_bytes` bounds the size of the text as PostgreSQL prints jsonb. `field` is what the value is called in errors.
    """
    try:
        _check_shape(value, max_bytes, field)
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError) as refusal:
        if isinstance(refusal, InvalidInput):
            raise
        _explain(value, field, refusal)
    if "\\u0000" in text or _LONG_DIGITS.search(text) is not None:
        _check_values(value, field)
    if _EXPONENT.search(text) is not None:
        size += sum(_hidden_digits(leaf) for _, leaf in _leaves(value, field) if isinstance(leaf, float))
    if size > max_bytes:
        raise InvalidInput(field, _too_large(f"{size:,} bytes", max_bytes))
    return text


def encode_result(value: object, max_bytes: int = RESULT_BYTES) -> str:
    """The JSON text of what a handler returned. Never raises: the work is done, so a value that cannot be stored is
    replaced by a marker that says why."""
    try:
        return encode_payload(value, max_bytes, "result")
    except InvalidInput as refusal:
        why = str(refusal)
    except Exception as broken:  # a container of the handler's own can raise anything while it is read
        why = f"result: reading it raised {type(broken).__name__}"
    return json.dumps({"stopline": "result not stored", "why": clean(why, _WHY_BYTES)}, ensure_ascii=False)


def decode(text: str) -> Any:
    """The value of JSON text from the database, or `ValueError` naming why it cannot be read."""
    try:
        value = _DECODER.decode(text)
        if _LONG_DIGITS.search(text) is not None:
            json.loads(text, parse_float=_finite)
    except json.JSONDecodeError as broken:
        raise ValueError(f"not JSON: {broken}") from None
    except RecursionError:
        raise ValueError("lists and objects lie too deep in one another to be read") from None
    except ValueError as broken:
        if "integer string conversion" in str(broken):
            raise ValueError("a number has more digits than can be read (4,300)") from None
        raise
    return value


def check_key(key: str | None) -> str | None:
    """The key itself, or `InvalidInput` if it is empty, too long, or holds characters that the database refuses."""
    if key is None:
        return None
    if not isinstance(key, str):
        raise InvalidInput("key", f"must be text or None, got {type(key).__name__}; use str()")
    if not key:
        raise InvalidInput("key", "must not be empty; use None for a job without a key")
    _check_text(key, "key")
    size = len(key.encode("utf-8"))
    if size > KEY_BYTES:
        raise InvalidInput("key", f"is {size:,} bytes, the limit is {KEY_BYTES}; use a hash of it")
    return str(key)


def check_time(field: str, value: datetime) -> datetime:
    """The time in UTC, or `InvalidInput` if it has no zone or lies outside the years 2000 to 9998."""
    if not isinstance(value, datetime):
        raise InvalidInput(field, f"must be a datetime with a time zone, got {type(value).__name__}")
    if value.year not in _YEARS:
        raise InvalidInput(field, "must lie in the years 2000 to 9998; use None for no limit")
    if value.utcoffset() is None:
        raise InvalidInput(field, "has no time zone; use datetime.now(UTC) or .replace(tzinfo=...)")
    in_utc = value.astimezone(UTC)
    if in_utc.year not in _YEARS:
        raise InvalidInput(field, "must lie in the years 2000 to 9998 in UTC")
    return in_utc


def _check_shape(value: object, max_bytes: int, field: str) -> None:
    """Refuses what json.dumps would coerce, follow for ever or spend memory on: keys, depth, cycles and excess."""
    waiting: list[tuple[object, int]] = [(value, 0)]
    least = 0
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, str):
            least += len(item) + 2
        elif isinstance(item, dict | list | tuple) and depth >= MAX_DEPTH:
            _explain(value, field, None)
        elif isinstance(item, dict):
            least += max(2, 6 * len(item))
            for key, inner in item.items():
                if not isinstance(key, str):
                    _explain(value, field, None)
                least += len(key)
                waiting.append((inner, depth + 1))
        elif isinstance(item, list | tuple):
            least += 2 * max(1, len(item))
            waiting.extend((inner, depth + 1) for inner in item)
        if least > max_bytes:
            raise InvalidInput(field, _too_large(f"over {max_bytes:,} bytes", max_bytes))


def _explain(value: object, field: str, refusal: Exception | None) -> NoReturn:
    """Walk a value that cannot be stored and raise for the first place that breaks a rule."""
    _check_values(value, field)
    raise InvalidInput(field, f"cannot be written as JSON: {refusal}")


def _check_values(value: object, field: str) -> None:
    for path, leaf in _leaves(value, field):
        _check_leaf(path, leaf)


def _leaves(value: object, path: str, above: tuple[int, ...] = ()) -> Iterator[tuple[str, object]]:
    """Every key and scalar of a value with its path; raises for cycles, depth and keys that are not text."""
    if not isinstance(value, dict | list | tuple):
        yield path, value
        return
    if id(value) in above:
        raise InvalidInput(path, "contains itself; JSON has no references")
    if len(above) >= MAX_DEPTH:
        raise InvalidInput(path, f"lies deeper than {MAX_DEPTH} lists and objects; flatten it")
    within = (*above, id(value))
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise InvalidInput(path, f"has a key of type {type(key).__name__}; JSON keys are text, use str()")
            place = _place(path, key)
            _check_text(key, f"{place} (the key)")
            yield from _leaves(inner, place, within)
    else:
        for index, inner in enumerate(value):
            yield from _leaves(inner, f"{path}[{index}]", within)


def _check_leaf(path: str, leaf: object) -> None:
    if isinstance(leaf, str):
        _check_text(leaf, path)
    elif isinstance(leaf, float):
        if not math.isfinite(leaf):
            raise InvalidInput(
                path, f"is {_NON_FINITE.get(str(leaf), leaf)}, which JSON does not have; use null or text"
            )
    elif isinstance(leaf, int):
        if abs(leaf) > _LARGEST_INT:
            raise InvalidInput(path, "is an integer beyond 1e308 (309 digits); use text")
    elif leaf is not None:
        name = type(leaf).__name__
        raise InvalidInput(
            path, f"is a {name}, which JSON does not have; {_FIXES.get(name, 'use text, numbers, lists or objects')}"
        )


def _check_text(text: str, path: str) -> None:
    if "\x00" in text:
        raise InvalidInput(path, "holds a NUL character, which PostgreSQL text cannot; remove it")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as broken:
        code = ord(text[broken.start])
        raise InvalidInput(
            path, f"holds half of a character (lone surrogate U+{code:04X}); decode the text as UTF-8"
        ) from None


def _place(path: str, key: str) -> str:
    if _NAME.fullmatch(key):
        return f"{path}.{key}"
    return f"{path}[{json.dumps(key[:60])}]"


def _hidden_digits(number: float) -> int:
    """How many more characters jsonb prints for a float that Python writes with an exponent."""
    return len(format(Decimal(repr(number)), "f")) - len(repr(number))


def _too_large(size: str, max_bytes: int) -> str:
    return f"is {size}, the limit is {max_bytes:,}; store the data elsewhere and pass a reference"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)
"""Made once: json.loads with an argument makes a decoder for each of a batch's jobs."""


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError("a number is beyond 1e308")
    return number
