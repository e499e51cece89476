"""The types of keys that hold several values: lists of names and tables of environment variables."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stopline.policy.values import Text, shown


@dataclass(frozen=True)
class Names:
    """A list of texts of one form, without repeats."""

    item: Text

    def read(self, raw: object) -> tuple[str, ...]:
        if not isinstance(raw, list | tuple):
            raise ValueError(f"must be a list; got {shown(raw)}, write [{shown(raw)}]")
        found: list[str] = []
        for position, entry in enumerate(raw, start=1):
            try:
                name = self.item.read(entry)
            except ValueError as broken:
                raise ValueError(f"entry {position} {broken}") from None
            if name in found:
                raise ValueError(f"entry {position} repeats {shown(name)}; remove it")
            found.append(name)
        return tuple(found)

    def to_row(self, value: tuple[str, ...]) -> object:
        return list(value)

    def describe(self) -> str:
        return f"a list, each entry {self.item.describe()}"


@dataclass(frozen=True)
class Variables:
    """Environment variables: a table of names and texts."""

    reserved: tuple[str, ...] = ("STOPLINE_", "AWS_", "LAMBDA_", "PG", "_")

    def read(self, raw: object) -> Mapping[str, str]:
        if not isinstance(raw, Mapping):
            raise ValueError(f'must be a table, such as environment = {{ ENDPOINT = "https://..." }}; got {shown(raw)}')
        for name, value in raw.items():
            if not isinstance(name, str) or re.fullmatch(r"[A-Z_][A-Z0-9_]{0,127}", name) is None:
                raise ValueError(f"names are capital letters, digits and underscores; got {shown(name)}")
            if name.startswith(self.reserved):
                raise ValueError(f"{name} is reserved: names must not start with {', '.join(self.reserved)}; rename it")
            if not isinstance(value, str) or "\x00" in value or len(value) > 2048:
                raise ValueError(f"{name} must be text in quotes of at most 2,048 characters; got {shown(value)}")
        return dict(raw)

    def to_row(self, value: Mapping[str, str]) -> object:
        return dict(value)

    def describe(self) -> str:
        return "a table of environment variables"
