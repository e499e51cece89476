"""How a key of `policy.toml` is declared: once, on its dataclass field, with type, bounds, default and a line of text.

The parser, the rows, the errors and the reference are all made from the declarations.
"""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any

from stopline.policy.values import ValueType

_DECLARATION = "stopline.key"
_SECTION = "stopline.section"
REQUIRED: Any = MISSING


@dataclass(frozen=True)
class Key:
    """One declared key. `name` is as in errors and docs, such as "limits.max_attempts"; `column` is its column in
    `stopline.kind`, None if the database does not need it."""

    section: str
    attribute: str
    type: ValueType
    doc: str
    column: str | None
    default: Any
    default_text: str

    @property
    def name(self) -> str:
        return f"{self.section}.{self.attribute}" if self.section else self.attribute

    @property
    def required(self) -> bool:
        return self.default is MISSING


def key(
    value_type: ValueType, doc: str, *, default: Any = REQUIRED, column: str | None = None, default_text: str = ""
) -> Any:
    """Declare a key. `default_text` describes a default that other keys decide. `column` "" keeps it out of rows."""
    metadata = {_DECLARATION: (value_type, doc, column, default_text)}
    if isinstance(default, dict):
        return field(default_factory=lambda: dict(default), metadata=metadata)
    return field(default=default, metadata=metadata)


def section(kind: Callable[[], Any]) -> Any:
    """Declare a section of keys, a dataclass of its own."""
    return field(default_factory=kind, metadata={_SECTION: kind})


def section_types(model: type[Any]) -> dict[str, type[Any]]:
    """The dataclass of each section by its name; the keys above all sections have the name ""."""
    found = {entry.name: entry.metadata[_SECTION] for entry in fields(model) if _SECTION in entry.metadata}
    return {"": model, **found}


def declared_keys(model: type[Any]) -> Iterator[Key]:
    """Every key in the order of declaration."""
    for name, kind in section_types(model).items():
        for entry in fields(kind):
            if _DECLARATION in entry.metadata:
                yield _key(name, entry)


def _key(section_name: str, entry: "Field[Any]") -> Key:
    value_type, doc, column, default_text = entry.metadata[_DECLARATION]
    default = entry.default_factory() if entry.default_factory is not MISSING else entry.default
    return Key(
        section=section_name,
        attribute=entry.name,
        type=value_type,
        doc=doc,
        column=entry.name if column is None else column or None,
        default=default,
        default_text=default_text,
    )
