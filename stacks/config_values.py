"""Types of single configuration values: the rule as a person reads it, and the reader of a JSON value or of the text
of a `-c key=value`."""

import ipaddress
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Value:
    """`rule` completes the sentence "must be ..."; `read` raises ValueError or TypeError for what breaks it."""

    rule: str
    read: Callable[[Any], Any]


def text(pattern: str, rule: str) -> Value:
    """A text that matches `pattern` as a whole."""
    compiled = re.compile(pattern)

    def read(value: Any) -> str:
        if not compiled.fullmatch(value):
            raise ValueError
        return str(value)

    return Value(rule, read)


def one_of(*choices: str) -> Value:
    """One of a few words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError
        return str(value)

    return Value(" or ".join(f'"{choice}"' for choice in choices), read)


def whole(lowest: int, highest: int) -> Value:
    """A whole number between two bounds, both included."""

    def read(value: Any) -> int:
        number = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value
        if not isinstance(number, int) or isinstance(number, bool) or not lowest <= number <= highest:
            raise ValueError
        return number

    return Value(f"a whole number from {lowest:,} to {highest:,}", read)


def number_of(choices: tuple[int, ...]) -> Value:
    """One of a few whole numbers."""
    within = whole(min(choices), max(choices))

    def read(value: Any) -> int:
        number: int = within.read(value)
        if number not in choices:
            raise ValueError
        return number

    return Value("one of " + ", ".join(str(choice) for choice in choices), read)


def capacity(lowest: float, why: str = "") -> Value:
    """An Aurora capacity: half units up to 256."""

    def read(value: Any) -> float:
        number = -1.0 if isinstance(value, bool) else float(value)
        if not lowest <= number <= 256 or not (number * 2).is_integer():
            raise ValueError
        return number

    return Value(f"a multiple of 0.5 from {lowest:g} to 256{why}", read)


def flag() -> Value:
    """True or false."""

    def read(value: Any) -> bool:
        if value is True or value == "true":
            return True
        if value is False or value == "false":
            return False
        raise ValueError

    return Value("true or false", read)


def network() -> Value:
    """An IPv4 network for a VPC, which is cut into eight parts."""

    def read(value: Any) -> str:
        if not isinstance(value, str):
            raise TypeError
        parsed = ipaddress.IPv4Network(value)
        if not parsed.is_private or not 16 <= parsed.prefixlen <= 22:
            raise ValueError
        return str(parsed)

    return Value("a network of private IPv4 addresses from /16 to /22, such as 10.42.0.0/16", read)


def several(item: Value, lowest: int) -> Value:
    """A list without twins: JSON, or on the command line words with commas."""

    def read(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = json.loads(value) if value.startswith("[") else [part.strip() for part in value.split(",")]
        if not isinstance(value, list):
            raise TypeError
        items = tuple(item.read(part) for part in value)
        if len(items) < lowest or len(set(items)) != len(items):
            raise ValueError
        return items

    return Value(f"a list of at least {lowest} and no twins, each {item.rule}", read)


def tags() -> Value:
    """An object of texts, within the limits of AWS tags."""

    def read(value: Any) -> dict[str, str]:
        if isinstance(value, str):
            value = json.loads(value)
        if not isinstance(value, dict) or len(value) > 40:
            raise ValueError
        for name, content in value.items():
            good = isinstance(content, str) and 0 < len(name) <= 128 and len(content) <= 256
            if not good or name.startswith("aws:"):
                raise ValueError
        return dict(sorted(value.items()))

    return Value('an object of up to 40 tags, such as {"team": "billing"}; no name starts with aws:', read)
