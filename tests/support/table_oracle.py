"""Rows and questions that break careless code, and the right answers, found in plain Python over lists.

The schema has two fields of each type, under names that are syntax elsewhere and are twins of one another. Rows also
hold what no schema allows: a table file belongs to its user.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import cmp_to_key
from typing import Any

import apsw
import msgspec
from hypothesis import strategies as st

from convmem.tables.filters import GROUPS, OPERATORS
from convmem.tables.model import Field, TableSchema
from tests.support.texts import texts

NAMES: dict[str, tuple[str, ...]] = {
    "string": ('a."b"', "é"),
    "number": ("select", "e\u0301"),
    "boolean": ("$[0]", "'; DROP TABLE rows; --"),
    "array": ("日本", "a b"),
    "object": ("\\", "key"),
}
SCHEMA = TableSchema(
    table="nasty", fields=tuple(Field(name=name, type=kind) for kind, names in NAMES.items() for name in names)
)
TYPES = {field.name: field.type for field in SCHEMA.fields}

few_texts = st.sampled_from(["", "a", "A", "ab", "é", "e\u0301", "x\0y", "x", "\0", "1", "true", "a%b", "\U0001f600"])
string_values = few_texts | texts
number_values = (
    st.sampled_from([0, 1, -1, 2**53, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1.0, -0.0, 0.1, 1.5, 2.0**53])
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
)
scalars = string_values | number_values | st.booleans()
values_of: dict[str, st.SearchStrategy[Any]] = {
    "string": string_values,
    "number": number_values,
    "boolean": st.booleans(),
    "array": st.lists(scalars | st.none() | st.lists(scalars, max_size=2), max_size=4),
    "object": st.dictionaries(few_texts, scalars, max_size=2),
}
any_value = st.one_of(st.none(), *values_of.values())


def _cell(kind: str) -> st.SearchStrategy[Any]:
    """A value of a field: mostly of its type."""
    return values_of[kind] | values_of[kind] | any_value


rows = st.fixed_dictionaries(
    {},
    optional={
        **{name: _cell(kind) for name, kind in TYPES.items()},
        **dict.fromkeys(("a", "b", "unknown", "key.x"), any_value),
    },
)
tables = st.lists(rows, max_size=8)


@st.composite
def conditions(draw: Callable[..., Any]) -> dict[str, Any]:
    """One condition as JSON that the schema allows."""
    kind = draw(st.sampled_from(sorted(OPERATORS)))
    operator = OPERATORS[kind]
    type_ = draw(st.sampled_from(operator.of))
    asked: dict[str, Any] = {"type": kind, "field": draw(st.sampled_from(NAMES[type_]))}
    if kind == "exists":
        return {**asked, **draw(st.sampled_from([{}, {"value": True}, {"value": False}]))}
    if kind == "in":
        return {**asked, "values": draw(st.lists(values_of[type_], min_size=1, max_size=4))}
    if kind == "like":
        return {**asked, "pattern": draw(patterns)}
    return {**asked, "value": draw(scalars if type_ == "array" else values_of[type_])}


# Any number of signs; a single escape at the end is given something to escape.
patterns = st.lists(few_texts | st.sampled_from(["%", "_", "\\", "%", "\\%"]), max_size=5).map(
    lambda signs: (text := "".join(signs)) + "%" * ((len(text) - len(text.rstrip("\\"))) % 2)
)


def _grouped(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    many = st.builds(
        lambda kind, parts: {"type": kind, GROUPS[kind]: parts},
        st.sampled_from(["and", "or"]),
        st.lists(inner, min_size=1, max_size=3),
    )
    return many | inner.map(lambda part: {"type": "not", GROUPS["not"]: part})


asked_filters: st.SearchStrategy[Any] = st.recursive(conditions(), _grouped, max_leaves=6).filter(
    lambda asked: _levels(asked) <= 8
)


def _levels(asked: Any) -> int:
    parts = asked.get("filters", [asked["filter"]] if "filter" in asked else [])
    return 1 + max(map(_levels, parts), default=0)


def table(data: Sequence[Any], *, attached: str = "main", connection: apsw.Connection | None = None) -> apsw.Connection:
    """A table of these rows: ids 00, 01, …; texts stand as they are, as what somebody else wrote."""
    connection = connection or apsw.Connection(":memory:")
    connection.execute(f"CREATE TABLE {attached}.rows (id TEXT PRIMARY KEY, data TEXT, created_at, updated_at INTEGER)")
    for number, one in enumerate(data):
        insert(connection, f"{number:02}", one, at=number // 2, attached=attached)
    return connection


def insert(connection: apsw.Connection, row_id: str, data: Any, *, at: int = 0, attached: str = "main") -> None:
    """One more row, made and changed at this time."""
    text = data if isinstance(data, str) else msgspec.json.encode(data).decode()
    connection.execute(f"INSERT INTO {attached}.rows VALUES (?, ?, ?, ?)", (row_id, text, at, at))


def kind_of(value: Any) -> str | None:
    """What a value is in JSON; lists and objects stand for nothing here."""
    if isinstance(value, bool):
        return "boolean"
    return "string" if isinstance(value, str) else "number" if isinstance(value, int | float) else None


def is_like(text: str, pattern: str) -> bool:
    """LIKE by definition: try everything."""
    if not pattern:
        return not text
    first, rest = pattern[0], pattern[1:]
    if first == "%":
        return any(is_like(text[at:], rest) for at in range(len(text) + 1))
    if first == "\\":
        first, rest = rest[0], rest[1:]
    elif first == "_":
        return bool(text) and is_like(text[1:], rest)
    is_letter = first.isascii() and first.isalpha()
    return bool(text) and (text[0] == first or (is_letter and text[0] in first.swapcase())) and is_like(text[1:], rest)


def sort_value(value: Any, kind: str) -> tuple[Any, ...]:
    """A value of an ordering field: what is not of its type is less than everything."""
    if kind_of(value) != kind:
        return (0,)
    return (1, value.encode()[:256]) if isinstance(value, str) else (1, value)


def ordered(rows_by_id: dict[str, Any], order: Sequence[tuple[str, bool]]) -> list[str]:
    """The ids in an order of (field, is descending), then by id."""

    def compare(one: str, other: str) -> int:
        for field, is_descending in order:
            mine, yours = (sort_value(rows_by_id[row_id].get(field), TYPES[field]) for row_id in (one, other))
            if mine != yours:
                return -1 if (mine < yours) != is_descending else 1
        return -1 if one < other else 1

    return sorted(rows_by_id, key=cmp_to_key(compare))


def aggregated(data: Sequence[Any], kind: str, field: str | None) -> Any:
    """One value of many rows, by exact arithmetic."""
    if kind == "count" or field is None:
        return len(data)
    values = [row[field] for row in data if kind_of(row.get(field)) == TYPES[field]]
    if not values:
        return None
    if kind in {"min", "max"}:
        return (min if kind == "min" else max)(values)
    total = sum(map(Fraction, values))
    return total if kind == "sum" else total / len(values)


def grouped(data: Sequence[Any], field: str) -> dict[Any, list[Any]]:
    """Rows by (type, value) of a field, (None, None) where there is none."""
    groups: dict[Any, list[Any]] = {}
    for row in data:
        kind = kind_of(row.get(field))
        groups.setdefault((kind, row[field] if kind else None), []).append(row)
    return groups
