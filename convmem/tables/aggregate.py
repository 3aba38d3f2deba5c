"""What a caller wants to know of many rows at once, of one table or several: how many, a sum, the least, groups.

The idea: SQLite adds up and counts, and what it would say inexactly is put together by methods.py. Only values of the
type that the schema says count; a sum of nothing is null, as the least of nothing is.

A group's key is the value of a field: true, 1 and "1" are three keys, 1 and 1.0 are one; rows without a value are the
group of null. What `having` and `order` say of groups is the same filter and the same order as of rows, over fields
`key` (or the name of the field), `count` and `value`.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import cmp_to_key
from heapq import nsmallest
from typing import Any, NamedTuple

import apsw
import msgspec

from convmem.errors import AggregateRefused
from convmem.limits import AGGREGATE_SOURCES_MAX, GROUPS_LIMIT_DEFAULT, GROUPS_LIMIT_MAX
from convmem.tables import filters, ordering
from convmem.tables.conditions import IS_AN_OBJECT, Piece, field_value, to_sql
from convmem.tables.filters import SCALARS, Filter, field_at, object_at, refuse
from convmem.tables.likeness import Look
from convmem.tables.methods import METHODS
from convmem.tables.model import Field, FieldType, TableSchema


class Source(NamedTuple):
    """One table: its schema, and the name under which its file is attached (`main`, or one of ours)."""

    schema: TableSchema
    attached: str = "main"


class Scalar(NamedTuple):
    """One value of many rows: `kind` of METHODS, of a field unless it counts rows."""

    kind: str
    field: str | None = None
    type: FieldType = "number"


class Groups(NamedTuple):
    """One value of each group of rows, and which groups are shown in which order."""

    by_field: str
    inner: Scalar | None
    having: Filter | None
    order: tuple[tuple[str, bool], ...]
    limit: int

    @property
    def parts(self) -> dict[str, str]:
        """What having and order may name, and which part of a group that is: `count` is never the field's name."""
        value = {} if self.inner is None else {"value": "value"}
        return {self.by_field: "key", "key": "key", **value, "count": "count"}


Aggregator = Scalar | Groups


class Group(msgspec.Struct, frozen=True):
    """A group of rows: its key (a scalar, or null), how many rows, and the value of the inner aggregate."""

    key: Any
    count: int
    value: Any


KINDS = (*METHODS, "group_by")


def parse(value: Any, schemas: Sequence[TableSchema], at: str = "aggregator") -> Aggregator:
    """An aggregator as JSON, checked against the schema of every source. Invalid with the path of the fault."""
    if not isinstance(value, dict):
        refuse(at, "must be an object")
    kind = value.get("kind")
    if not isinstance(kind, str) or kind not in KINDS:
        refuse(f"{at}.kind", f"must be one of {', '.join(KINDS)}")
    return _groups(value, schemas, at) if kind == "group_by" else _scalar(value, kind, schemas, at)


def _scalar(value: dict[str, Any], kind: str, schemas: Sequence[TableSchema], at: str) -> Scalar:
    if kind == "count":
        object_at(value, at, ("kind",))
        return Scalar(kind)
    object_at(value, at, ("kind", "field"))
    return Scalar(kind, value["field"], _type_of(value["field"], schemas, METHODS[kind].of, f"{at}.field"))


def _type_of(name: Any, schemas: Sequence[TableSchema], of: Sequence[FieldType], at: str) -> FieldType:
    """The type that a field has in every source."""
    found: set[FieldType] = set()
    for schema in schemas:
        types = {field.name: field.type for field in schema.fields}
        type_ = types[field_at(name, at, types)]
        if type_ not in of:
            refuse(at, f"names a field of type {type_} in table {schema.table}; it must be a {' or '.join(of)}")
        found.add(type_)
    if len(found) > 1:
        refuse(at, f"names a field that is {' here and '.join(sorted(found))} there, so its values do not compare")
    return found.pop()


def _groups(value: dict[str, Any], schemas: Sequence[TableSchema], at: str) -> Groups:
    object_at(value, at, ("kind", "by_field"), ("inner", "having", "order", "limit"))
    by_field = value["by_field"]
    by_type = _type_of(by_field, schemas, SCALARS, f"{at}.by_field")
    inner = None
    if value.get("inner") is not None:
        found = parse(value["inner"], schemas, f"{at}.inner")
        if isinstance(found, Groups):
            refuse(f"{at}.inner.kind", "must not be group_by: groups are not grouped again")
        inner = found
    types: dict[str, FieldType] = {by_field: by_type, "key": by_type, "count": "number"}
    if inner is not None:
        types["value"] = "number" if inner.kind in {"count", "sum", "avg"} else inner.type
    having = None
    if value.get("having") is not None:
        fields = tuple(Field(name=name, type=type_) for name, type_ in types.items())
        having = filters.parse(value["having"], TableSchema(table=schemas[0].table, fields=fields), f"{at}.having")
    order = value.get("order")
    asked = ordering.directions(order, types, SCALARS, f"{at}.order") if order else []
    limit = GROUPS_LIMIT_DEFAULT if value.get("limit") is None else value["limit"]
    if type(limit) is not int or not 1 <= limit <= GROUPS_LIMIT_MAX:
        refuse(f"{at}.limit", f"must be an integer from 1 to {GROUPS_LIMIT_MAX}")
    return Groups(by_field, inner, having, tuple(asked), limit)


def run(
    connection: apsw.Connection, sources: Sequence[Source], filter_: Filter | None, aggregator: Aggregator
) -> dict[str, Any]:
    """`{kind: count/value/groups, value}` over the rows of all sources; groups that were left out make it `truncated`.

    The connection sees each source under its attached name. AggregateRefused for too many sources, none, or a sum that
    no number holds.
    """
    if not sources:
        raise AggregateRefused("there is no table to look at")
    if len(sources) > AGGREGATE_SOURCES_MAX:
        raise AggregateRefused(f"at most {AGGREGATE_SOURCES_MAX} tables are looked at together, not {len(sources)}")
    if isinstance(aggregator, Groups):
        # One more than is shown tells whether there are more.
        found = _chosen(_found(connection, sources, filter_, aggregator), aggregator, lambda: _look(connection))
        shown = [_facts(group, aggregator) for group in found[: aggregator.limit]]
        is_cut = {"truncated": True} if len(found) > aggregator.limit else {}
        return {"kind": "groups", "value": shown, **is_cut}
    method = METHODS[aggregator.kind]
    rows = _union(sources, filter_, _value(aggregator), Piece("NULL"))
    (columns,) = connection.execute(f"SELECT {', '.join(method.columns)} FROM ({rows.sql})", rows.bindings)
    return {"kind": "count" if aggregator.kind == "count" else "value", "value": method.made(*columns)}


def _found(
    connection: apsw.Connection, sources: Sequence[Source], filter_: Filter | None, asked: Groups
) -> Iterator[Group]:
    """Every group, one by one: there may be as many as rows."""
    inner = asked.inner or Scalar("count")
    method = METHODS[inner.kind]
    rows = _union(sources, filter_, _value(inner), _key(asked.by_field))
    sql = f"SELECT k, max(typeof(k) = 'integer'), count(*), {', '.join(method.columns)} FROM ({rows.sql}) GROUP BY k"
    for key, has_integer, count, *columns in connection.execute(sql, rows.bindings):
        yield Group(_read_key(key, bool(has_integer)), count, method.made(*columns))


def _look(connection: apsw.Connection) -> None:
    """Have SQLite look at the time, as it does between some dozens of steps: InterruptError once that is over."""
    connection.execute("WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n LIMIT 99) SELECT sum(x) FROM n")


def _chosen(found: Iterator[Group], asked: Groups, look: Look) -> list[Group]:
    """The first groups that fulfil `having`, and one more if there is one; in the order asked for, then by key."""
    if asked.having is not None:
        having, parts = asked.having, asked.parts
        found = (one for one in found if filters.matches(having, _named(one, parts), look))
    order = [*((asked.parts[name], is_descending) for name, is_descending in asked.order), ("key", False)]

    def compare(one: Group, other: Group) -> int:
        for part, is_descending in order:
            mine, yours = _rank(getattr(one, part)), _rank(getattr(other, part))
            if mine != yours:
                return -1 if (mine < yours) != is_descending else 1
        return 0

    return nsmallest(asked.limit + 1, found, key=cmp_to_key(compare))


def _named(group: Group, parts: Mapping[str, str]) -> dict[str, Any]:
    return {name: getattr(group, part) for name, part in parts.items()}


def _rank(value: Any) -> tuple[int, Any]:
    """Null first, then false and true, numbers, texts: values of one type compare, those of two never meet."""
    if value is None:
        return 0, 0
    return 1 + SCALARS[::-1].index(filters.kind_of(value) or ""), value


def _facts(group: Group, asked: Groups) -> dict[str, Any]:
    facts = {"key": group.key, "count": group.count}
    return facts if asked.inner is None else {**facts, "value": group.value}


def _union(sources: Sequence[Source], filter_: Filter | None, value: Piece, key: Piece) -> Piece:
    """The rows of all sources as columns v and k.

    The last arm adds none: it keeps SQLite from putting the expressions of a single source where v and k stand, which
    would read each row's JSON once for every one of them.
    """
    filtered = Piece("1") if filter_ is None else to_sql(filter_)
    arms = []
    for source in sources:
        assert source.attached.isidentifier(), "a name of ours"
        v, k = (f"CASE WHEN {IS_AN_OBJECT} THEN {piece.sql} END" for piece in (value, key))
        arms.append(f"SELECT {v} AS v, {k} AS k FROM {source.attached}.rows WHERE {filtered.sql}")
    bindings = (*value.bindings, *key.bindings, *filtered.bindings) * len(sources)
    return Piece(" UNION ALL ".join((*arms, "SELECT NULL, NULL WHERE 0")), bindings)


def _value(scalar: Scalar) -> Piece:
    return Piece("NULL") if scalar.field is None else field_value(scalar.field, scalar.type)


def _key(field: str) -> Piece:
    """A scalar of any type, true and false as bytes, so that no two types are one key."""
    of_type = (
        "CASE f.type WHEN 'true' THEN x'01' WHEN 'false' THEN x'00' WHEN 'text' THEN f.value"
        " WHEN 'integer' THEN f.value WHEN 'real' THEN f.value END"
    )
    return Piece(f"(SELECT {of_type} FROM json_each(data) AS f WHERE f.key = ?)", (field,))


def _read_key(key: Any, has_integer: bool) -> Any:
    if isinstance(key, bytes):
        return key == b"\1"
    if isinstance(key, float):
        # 1 and 1.0 are one key, 0.0 and -0.0 too: which of them SQLite shows depends on the order of the rows.
        return int(key) if has_integer else key + 0.0
    return key
