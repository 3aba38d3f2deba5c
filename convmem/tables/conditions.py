"""A filter as SQL, over rows whose `data` is one JSON object, with the answer of filters.matches.

The idea: what a caller names or gives is bound, never part of the SQL and never part of a JSON path. `json_each` lists
the fields of a row with their types, so a name is compared like any other text, dots and quotes and all; integers are
compared exactly, and no type is taken for another.

A table file belongs to the user, who may write into it by other means: a row whose data is no JSON object is in no
filter, and stops none.

Rejected: `json_extract(data, '$.name')`, which makes paths of names and cannot tell true from 1.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from convmem.tables import likeness
from convmem.tables.filters import Condition, Filter, kind_of

# The types of json_each by those of a schema.
IS_OF_TYPE: Mapping[str, str] = {
    "string": "{0}.type = 'text'",
    "number": "{0}.type IN ('integer', 'real')",
    "boolean": "{0}.type IN ('true', 'false')",
    "array": "{0}.type = 'array'",
    "object": "{0}.type = 'object'",
}
IS_AN_OBJECT = "CASE WHEN json_valid(data) THEN json_type(data) = 'object' END"


class Piece(NamedTuple):
    """A piece of SQL and the values of its `?`, in order."""

    sql: str
    bindings: tuple[Any, ...] = ()


def to_sql(filter_: Filter) -> Piece:
    """A condition on the column `data` of rows: true or false, never NULL."""
    inner = _said(filter_)
    return Piece(f"CASE WHEN {IS_AN_OBJECT} THEN {inner.sql} ELSE 0 END", inner.bindings)


def field_value(field: str, type_: str) -> Piece:
    """An expression: the value of a field that is of this type (true and false as 1 and 0), else NULL."""
    is_of_type = IS_OF_TYPE[type_].format("f")
    return Piece(f"(SELECT f.value FROM json_each(data) AS f WHERE f.key = ? AND {is_of_type})", (field,))


def _said(filter_: Filter) -> Piece:
    if isinstance(filter_, Condition):
        return _CONDITIONS[filter_.type](filter_)
    parts = [_said(part) for part in filter_.parts]
    bindings = tuple(value for part in parts for value in part.bindings)
    if filter_.type == "not":
        return Piece(f"NOT {parts[0].sql}", bindings)
    return Piece(f"({f' {filter_.type.upper()} '.join(part.sql for part in parts)})", bindings)


def _there(field: str, condition: str, *bindings: Any) -> Piece:
    """A row has this field, and `f` of json_each, which is the field, fulfils a condition."""
    return Piece(f"EXISTS (SELECT 1 FROM json_each(data) AS f WHERE f.key = ? AND {condition})", (field, *bindings))


def _not(piece: Piece) -> Piece:
    return Piece(f"NOT {piece.sql}", piece.bindings)


def _compared(asked: Condition, sign: str) -> Piece:
    is_of_type = IS_OF_TYPE[_kind(asked.value)].format("f")
    return _there(asked.field, f"{is_of_type} AND f.value {sign} ?", bound(asked.value))


def _among(asked: Condition) -> Piece:
    # One value however many: SQLite has room for 32,766 of them in a statement. All are of the type of the field.
    is_of_type = IS_OF_TYPE[_kind(asked.value[0])].format("f")
    values = msgspec.json.encode([bound(value) for value in asked.value]).decode()
    return _there(asked.field, f"{is_of_type} AND f.value IN (SELECT value FROM json_each(?))", values)


def _alike(asked: Condition) -> Piece:
    condition, bindings = likeness.condition("f.value", asked.value)
    return _there(asked.field, f"f.type = 'text' AND {condition}", *bindings)


def _contained(asked: Condition) -> Piece:
    # The CASE says what SQLite's order of evaluation does not promise: only an array is ever taken apart.
    elements = "json_each(CASE f.type WHEN 'array' THEN f.value ELSE '[]' END) AS e"
    is_of_type = IS_OF_TYPE[_kind(asked.value)].format("e")
    return _there(
        asked.field, f"EXISTS (SELECT 1 FROM {elements} WHERE {is_of_type} AND e.value = ?)", bound(asked.value)
    )


def _exists(asked: Condition) -> Piece:
    there = _there(asked.field, "f.type <> 'null'")
    return there if asked.value else _not(there)


_CONDITIONS: Mapping[str, Callable[[Condition], Piece]] = {
    "eq": lambda asked: _compared(asked, "="),
    "ne": lambda asked: _not(_compared(asked, "=")),
    "lt": lambda asked: _compared(asked, "<"),
    "lte": lambda asked: _compared(asked, "<="),
    "gt": lambda asked: _compared(asked, ">"),
    "gte": lambda asked: _compared(asked, ">="),
    "in": _among,
    "like": _alike,
    "array_contains": _contained,
    "array_not_contains": lambda asked: _not(_contained(asked)),
    "exists": _exists,
}


def bound(value: Any) -> Any:
    """A scalar as json_each gives it: true and false are 1 and 0, beside their type."""
    return int(value) if isinstance(value, bool) else value


def _kind(value: Any) -> str:
    kind = kind_of(value)
    assert kind is not None, "filters.parse refuses null"
    return kind
