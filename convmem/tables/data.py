"""What a row may hold: its data checked against the schema, merged with a patch, and written as JSON.

Data is kept as the caller meant it. Types are exact (true, 1 and "1" are three things), integers too, since a rounded
one finds another row. Keys that the schema does not know stay. The JSON that is stored has the schema's fields first,
in its order, then the others as they were given: who opens the file sees what the schema shows. What a row is told
apart by is the hash of the canonical JSON, whose keys are sorted: it does not depend on the order that a caller chose.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import Any, NamedTuple

import msgspec

from convmem.errors import ContentTooLarge, Invalid
from convmem.limits import (
    FIELD_CODE_POINTS_MAX,
    INT64_MAX,
    INT64_MIN,
    JSON_LEVELS_MAX,
    ROW_DATA_BYTES_MAX,
    ROW_FIELDS_MAX,
)
from convmem.tables.model import FieldType, TableSchema

SURROGATE = re.compile("[\ud800-\udfff]")
# What a value of each type is, in the types that a JSON parser makes. A boolean is no number, though Python's is.
IS_OF_TYPE: Mapping[FieldType, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
}
ARTICLED: Mapping[FieldType, str] = {
    "string": "a string",
    "number": "a number",
    "boolean": "true or false",
    "array": "an array",
    "object": "an object",
}


def checked(schema: TableSchema, data: Mapping[str, Any]) -> dict[str, Any]:
    """The data as a row of this table holds it: fields in the schema's order, then other keys as given; a null of an
    optional field is dropped.

    Invalid with `field` (`data.NAME…`) for what is wrong with it, ContentTooLarge if its JSON is larger than a row's
    may be.
    """
    if not isinstance(data, Mapping):
        raise _refused("", "must be an object")
    if len(data) > ROW_FIELDS_MAX:
        raise _refused("", f"must have at most {ROW_FIELDS_MAX} fields")
    row: dict[str, Any] = {}
    for field in schema.fields:
        value = data.get(field.name)
        if value is None:
            if field.required:
                raise _refused(f".{field.name}", "is required")
        elif not IS_OF_TYPE[field.type](value):
            raise _refused(f".{field.name}", f"must be {ARTICLED[field.type]}")
        else:
            row[field.name] = value
    known = {field.name for field in schema.fields}
    row.update((name, value) for name, value in data.items() if name not in known)
    for name, value in row.items():
        if not isinstance(name, str) or "\0" in name or SURROGATE.search(name):
            raise _refused("", "must have texts without U+0000 as keys")
        if fault := _fault(value, 2):
            raise _refused(".".join(("", name, *map(str, fault.path))), fault.sentence)
    _refuse_large(row)
    return row


def merged(data: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """`data` with a patch laid over it (RFC 7396, one level): what the patch does not name stays, null takes away, any
    other value replaces the old one whole. The result is unchecked: it goes through checked().
    """
    result = {**data, **patch}
    return {name: value for name, value in result.items() if name not in patch or value is not None}


def stored(data: Mapping[str, Any]) -> bytes:
    """The JSON of checked data as the file holds it: compact UTF-8, keys in their order."""
    return msgspec.json.encode(data)


def canonical(data: Mapping[str, Any]) -> bytes:
    """The JSON that says what the data is: compact UTF-8, the keys of every object sorted by code point."""
    return msgspec.json.encode(data, order="sorted")


def sha256(data: Mapping[str, Any]) -> str:
    """SHA-256 of the canonical JSON, in lower-case hex: what `expected_sha256` is compared with."""
    return hashlib.sha256(canonical(data)).hexdigest()


class _Fault(NamedTuple):
    """What is wrong, and the way to it from where it was looked for."""

    path: tuple[str | int, ...]
    sentence: str


def _fault(value: Any, level: int) -> _Fault | None:
    """What is no JSON by our rules, however it came in. `data` itself is level 1.

    The path is made on the way back only: one of each value, under a long key, would be far larger than the data.
    """
    kind = type(value)
    if kind is dict or kind is list:
        if level > JSON_LEVELS_MAX:
            return _Fault((), f"has more than {JSON_LEVELS_MAX} levels")
        for name, inner in value.items() if kind is dict else enumerate(value):
            if kind is dict and (type(name) is not str or SURROGATE.search(name)):
                return _Fault((), "must have texts as keys")
            if fault := _fault(inner, level + 1):
                return _Fault((name, *fault.path), fault.sentence)
        return None
    sentence = None
    if kind is str:
        sentence = "is not valid Unicode" if SURROGATE.search(value) else None
    elif kind is int:
        sentence = None if INT64_MIN <= value <= INT64_MAX else "must fit in 64 bits"
    elif kind is float:
        sentence = None if isfinite(value) else "must be a finite number"
    elif kind is not bool and value is not None:
        sentence = "is no JSON value"
    return _Fault((), sentence) if sentence else None


def _refuse_large(row: Mapping[str, Any]) -> None:
    size_bytes = len(stored(row))
    if size_bytes > ROW_DATA_BYTES_MAX:
        raise ContentTooLarge(
            f"data is {size_bytes} bytes of JSON; {ROW_DATA_BYTES_MAX} is the most",
            bytes=size_bytes,
            bytes_max=ROW_DATA_BYTES_MAX,
        )


def _refused(path: str, sentence: str) -> Invalid:
    field = SURROGATE.sub("\ufffd", f"data{path}")
    if len(field) > FIELD_CODE_POINTS_MAX:
        field = field[:FIELD_CODE_POINTS_MAX] + "…"
    return Invalid(f"{field} {sentence}", field=field)
