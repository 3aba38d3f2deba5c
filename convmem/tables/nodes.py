"""A value together with the place it came from, so that a refusal can name that place.

A schema comes from a file, where a person wants line and column, or from the arguments of a tool, where a program wants
the path of the argument. What is checked is the same, so both become nodes first.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from convmem.errors import CallerError, Invalid, SchemaError
from convmem.limits import FIELD_CODE_POINTS_MAX, JSON_LEVELS_MAX

SURROGATE = re.compile("[\ud800-\udfff]")


class Position(NamedTuple):
    """Where in a file something begins: both from 1, the column in code points."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Node:
    """A mapping, a list or a scalar. `text` is a scalar as it was written, if it is a text or may be taken for one.

    `path` leads to it from the root (`fields.0.name`), `at` says where it stands in its file, None for an argument.
    """

    value: "Mapping[str, Node] | tuple[Node, ...] | str | int | float | bool | None"
    text: str | None
    path: str
    at: Position | None = None

    def refused(self, sentence: str) -> CallerError:
        """The refusal of this node: the sentence goes on from its path ("must be a string")."""
        return refusal(self.path, self.at, sentence)

    def plain(self) -> Any:
        """The value without places, as JSON would hold it."""
        if isinstance(self.value, Mapping):
            return {name: node.plain() for name, node in self.value.items()}
        if isinstance(self.value, tuple):
            return [node.plain() for node in self.value]
        return self.value


def refusal(path: str, at: Position | None, sentence: str) -> CallerError:
    """SchemaError with line and column for something in a file, else Invalid with `field`."""
    said = f"{path or 'the schema'} {sentence}"
    if at is None:
        return Invalid(said, field=path)
    return SchemaError(f"line {at.line}, column {at.column}: {said}", line=at.line, column=at.column)


def child_path(path: str, name: str | int) -> str:
    """The path of what stands under `name` in what stands at `path`; cut, since a key may be as long as its file."""
    whole = f"{path}.{name}" if path else str(name)
    return whole if len(whole) <= FIELD_CODE_POINTS_MAX else whole[:FIELD_CODE_POINTS_MAX] + "…"


def text_fault(text: str) -> str | None:
    """Why a text cannot stand in a schema, as the end of a sentence; None if it can."""
    if "\0" in text:
        return "must not hold U+0000"
    return "is not valid Unicode" if SURROGATE.search(text) else None


def from_arguments(value: Any, path: str = "", level: int = 1) -> Node:
    """The node of a JSON value that a caller sent; Invalid with `field` if it is deeper than JSON may be, or holds a
    text that no file can.
    """
    if level > JSON_LEVELS_MAX:
        raise refusal(path, None, f"has more than {JSON_LEVELS_MAX} levels")
    if isinstance(value, Mapping):
        entries = {name: from_arguments(inner, child_path(path, name), level + 1) for name, inner in value.items()}
        return Node(entries, None, path)
    if isinstance(value, str):
        if fault := text_fault(value):
            raise refusal(path, None, fault)
        return Node(value, value, path)
    if isinstance(value, Sequence):
        items = [from_arguments(inner, child_path(path, place), level + 1) for place, inner in enumerate(value)]
        return Node(tuple(items), None, path)
    return Node(value, None, path)
