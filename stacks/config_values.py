"""Readers of single configuration values. Each takes a JSON value or the text of a `-c key=value`, and raises
ValueError with the rule that it breaks."""

import ipaddress
import json
import math
import re
from collections.abc import Callable
from typing import Any

Reader = Callable[[Any], Any]


def text(pattern: str, rule: str) -> Reader:
    """A text that matches `pattern` as a whole."""
    compiled = re.compile(pattern)

    def read(value: Any) -> str:
        if not isinstance(value, str) or not compiled.fullmatch(value):
            raise ValueError(rule)
        return value

    return read


def one_of(*choices: str) -> Reader:
    """One of a few words."""

    def read(value: Any) -> str:
        if value not in choices:
            raise ValueError(" or ".join(f'"{choice}"' for choice in choices))
        return str(value)

    return read


def whole(lowest: int, highest: int) -> Reader:
    """A whole number between two bounds, both included."""

    def read(value: Any) -> int:
        number = int(value) if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value) else value
        if not isinstance(number, int) or isinstance(number, bool) or not lowest <= number <= highest:
            raise ValueError(f"a whole number from {lowest:,} to {highest:,}")
        return number

    return read


def number_of(choices: tuple[int, ...]) -> Reader:
    """One of a few whole numbers."""
    within = whole(min(choices), max(choices))

    def read(value: Any) -> int:
        rule = "one of " + ", ".join(str(choice) for choice in choices)
        try:
            number: int = within(value)
        except ValueError:
            raise ValueError(rule) from None
        if number not in choices:
            raise ValueError(rule)
        return number

    return read


def capacity(lowest: float, why: str = "") -> Reader:
    """An Aurora capacity: half units up to 256."""

    def read(value: Any) -> float:
        try:
            number = math.nan if isinstance(value, bool) else float(value)
        except (TypeError, ValueError):
            number = math.nan
        if not lowest <= number <= 256 or number * 2 != int(number * 2):
            raise ValueError(f"a multiple of 0.5 from {lowest:g} to 256{why}")
        return number

    return read


def flag(value: Any) -> bool:
    """True or false."""
    if value in (True, "true"):
        return True
    if value in (False, "false"):
        return False
    raise ValueError("true or false")


def network(value: Any) -> str:
    """An IPv4 network of private addresses that a VPC takes: /16 to /22 here, as it is cut into up to six subnets."""
    rule = "a network of private IPv4 addresses from /16 to /22, such as 10.42.0.0/16"
    try:
        parsed = ipaddress.IPv4Network(value)
    except ValueError:
        raise ValueError(rule) from None
    if not parsed.is_private or not 16 <= parsed.prefixlen <= 22:
        raise ValueError(rule)
    return str(parsed)


def several(item: Reader, lowest: int) -> Reader:
    """A list without twins: JSON, or on the command line words with commas."""

    def read(value: Any) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = json.loads(value) if value.startswith("[") else [part.strip() for part in value.split(",")]
        if not isinstance(value, list):
            raise ValueError("a list")
        items = tuple(item(part) for part in value)
        if len(items) < lowest or len(set(items)) != len(items):
            raise ValueError(f"a list of at least {lowest} different entries")
        return items

    return read


def tags(value: Any) -> dict[str, str]:
    """An object of texts, within the limits of AWS tags."""
    rule = 'an object of up to 40 tags, such as {"team": "billing"}; no name starts with aws:'
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except ValueError:
            raise ValueError(rule) from None
    if not isinstance(value, dict) or len(value) > 40:
        raise ValueError(rule)
    for name, content in value.items():
        if not isinstance(content, str) or not 0 < len(name) <= 128 or len(content) > 256 or name.startswith("aws:"):
            raise ValueError(rule)
    return dict(sorted(value.items()))
