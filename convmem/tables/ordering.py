"""In which order rows come: what a caller asks, as keys that SQL sorts by and a cursor can hold.

The idea: every order is total. Behind the fields that were asked for stands the id, so two rows are never in the same
place and a page ends at one place only. A field that is missing, null or of another type than the schema says is less
than all others. Texts go by code point, and only their first bytes count, so that a key is never large.

Rejected: the position of a row as an offset (pages shift under inserts), and the keys of a row read again when the next
page is asked for (the row may have changed or gone).
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from convmem.limits import ORDER_FIELDS_MAX, ORDER_TEXT_BYTES
from convmem.tables.conditions import IS_AN_OBJECT, Piece, field_value
from convmem.tables.filters import field_at, object_at, refuse
from convmem.tables.model import TableSchema

DIRECTIONS = ("asc", "desc")
ORDERING_TYPES = ("string", "number", "boolean")
# What every row has beside its data. A field of that name goes before.
COLUMNS: Mapping[str, str] = dict.fromkeys(("created_at", "updated_at"), "time")

KeyValue = int | float | bytes | None


class Key(NamedTuple):
    """One field that orders, or a time of the row (type `time`)."""

    field: str
    type: str
    is_descending: bool


NEWEST_FIRST = (Key("created_at", "time", True),)


# A text in every table of ours; another program may have put anything there.
RowId = str | KeyValue


class Place(NamedTuple):
    """Where a row stands in an order: the values of its keys, and its id."""

    keys: tuple[KeyValue, ...]
    id: RowId


def parse(value: Any, schema: TableSchema, at: str = "order_by") -> tuple[Key, ...]:
    """The keys of `[{field, direction}]`; newest first if there are none. Invalid with the path of the fault."""
    if value is None or value == []:
        return NEWEST_FIRST
    types = {**COLUMNS, **{field.name: field.type for field in schema.fields}}
    return tuple(
        Key(name, types[name], is_descending)
        for name, is_descending in directions(value, types, (*ORDERING_TYPES, "time"), at)
    )


def directions(value: Any, types: Mapping[str, str], ordering: Sequence[str], at: str) -> list[tuple[str, bool]]:
    """`[{field, direction}]` as (name, is descending), by fields of `ordering` types. Invalid with the path."""
    if not isinstance(value, list) or not 1 <= len(value) <= ORDER_FIELDS_MAX:
        refuse(at, f"must be a list of at most {ORDER_FIELDS_MAX} fields")
    found: list[tuple[str, bool]] = []
    for number, item in enumerate(value):
        here = f"{at}.{number}"
        object_at(item, here, ("field",), ("direction",))
        name = field_at(item["field"], f"{here}.field", types)
        if types[name] not in ordering:
            refuse(f"{here}.field", f"names a field of type {types[name]}, by which rows cannot be ordered")
        if name in dict(found):
            refuse(f"{here}.field", "names a field that stands in the order already")
        direction = item.get("direction", "asc")
        if direction not in DIRECTIONS:
            refuse(f"{here}.direction", "must be asc or desc")
        found.append((name, direction == "desc"))
    return found


def columns(order: Sequence[Key]) -> Piece:
    """The keys as columns k0, k1, … of a SELECT from rows, each with a comma before it."""
    pieces = [_expression(key) for key in order]
    sql = "".join(f", {piece.sql} AS k{number}" for number, piece in enumerate(pieces))
    return Piece(sql, tuple(value for piece in pieces for value in piece.bindings))


def order_sql(order: Sequence[Key]) -> str:
    """What stands behind ORDER BY, where the columns are those of `columns` and `id`."""
    terms = (f"k{number} {'DESC' if key.is_descending else 'ASC'}" for number, key in enumerate(order))
    return ", ".join((*terms, "id ASC"))


def behind(order: Sequence[Key], place: Place) -> Piece:
    """A condition on the same columns: true for what comes after a place."""
    sql, bindings = ("id > ?", list[RowId]((place.id,))) if place.id is not None else ("id IS NOT NULL", list[RowId]())
    for number in reversed(range(len(order))):
        after, values = _after(f"k{number}", order[number].is_descending, place.keys[number])
        sql = f"({after} OR (k{number} IS ? AND {sql}))"
        bindings = [*values, place.keys[number], *bindings]
    return Piece(sql, tuple(bindings))


def _after(column: str, is_descending: bool, value: KeyValue) -> tuple[str, tuple[KeyValue, ...]]:
    """NULL is less than every value, in both directions; SQL's own comparisons say nothing of it."""
    if value is None:
        return ("0" if is_descending else f"{column} IS NOT NULL"), ()
    if is_descending:
        return f"({column} < ? OR {column} IS NULL)", (value,)
    return f"{column} > ?", (value,)


def _expression(key: Key) -> Piece:
    if key.type == "time":
        return Piece(f"CASE typeof({key.field}) WHEN 'integer' THEN {key.field} END")
    value = field_value(key.field, key.type)
    # As bytes: SQLite cuts a text at its first U+0000, and a key may end inside a character. One byte stands before all
    # of them, because SQLite makes NULL of a part of no bytes.
    text = f"substr(CAST('=' || {value.sql} AS BLOB), 1, 1 + {ORDER_TEXT_BYTES})"
    sql = text if key.type == "string" else value.sql
    return Piece(f"CASE WHEN {IS_AN_OBJECT} THEN {sql} END", value.bindings)
