"""Pages of rows side by side are the whole in its order, whatever is written meanwhile; aggregates are exact."""

from math import isclose, isfinite
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.errors import AggregateRefused
from convmem.tables import aggregate, filters, ordering, pages
from convmem.tables.aggregate import Source
from convmem.tables.pages import Question
from tests.support.table_oracle import (
    NAMES,
    SCHEMA,
    aggregated,
    asked_filters,
    grouped,
    insert,
    kind_of,
    ordered,
    rows,
    table,
    tables,
)

pytestmark = pytest.mark.slow

ORDERING = [name for kind in ordering.ORDERING_TYPES for name in NAMES[kind]]
orders = st.lists(st.tuples(st.sampled_from(ORDERING), st.booleans()), max_size=3, unique_by=lambda item: item[0])
some_filters = st.none() | asked_filters


def question(asked_filter: Any, order: list[tuple[str, bool]]) -> Question:
    asked = [{"field": name, "direction": "desc" if is_descending else "asc"} for name, is_descending in order]
    filter_ = None if asked_filter is None else filters.parse(asked_filter, SCHEMA)
    return Question("t", filter_, ordering.parse(asked, SCHEMA))


def walk(connection: apsw.Connection, asked: Question, limit: int, meanwhile: Any = None) -> list[str]:
    """The ids of all pages; `meanwhile` is called between two."""
    found: list[str] = []
    cursor = None
    while True:
        page = pages.find(connection, asked, limit=limit, cursor=cursor)
        found += [place.id for place in page.places]
        cursor = page.next_cursor(len(page.places)) if page.places else None
        if cursor is None:
            return found
        assert len(page.places) == limit
        if meanwhile is not None:
            meanwhile(found)


def chosen(data: list[Any], asked_filter: Any) -> list[Any]:
    filter_ = None if asked_filter is None else filters.parse(asked_filter, SCHEMA)
    return [row for row in data if filter_ is None or filters.matches(filter_, row)]


@given(tables, some_filters, orders, st.integers(1, 4))
@settings(derandomize=True, max_examples=100, deadline=None)
def test_pages_are_the_rows_of_the_filter_in_order(data: list[Any], asked_filter: Any, order: Any, limit: int):
    connection = table(data)
    asked = question(asked_filter, order)
    by_id = {f"{at:02}": row for at, row in enumerate(data) if chosen([row], asked_filter)}
    newest_first = sorted(by_id, key=lambda row_id: (-(int(row_id) // 2), row_id))
    expected = ordered(by_id, order) if order else newest_first
    assert walk(connection, asked, limit) == expected
    assert pages.count(connection, asked) == len(expected)
    assert [place.id for place in pages.find(connection, asked, limit=9, offset=2).places] == expected[2:]


@given(st.lists(rows, min_size=2, max_size=8), orders, st.integers(1, 3), st.data())
@settings(derandomize=True, max_examples=80, deadline=None)
def test_inserts_changes_and_deletions_between_pages_neither_repeat_nor_hide_others(
    data: list[Any], order: Any, limit: int, drawn: st.DataObject
):
    connection = table(data)
    touched: set[str] = set()

    def meanwhile(found: list[str]) -> None:
        insert(connection, f"n{len(touched)}{len(found)}", drawn.draw(rows), at=drawn.draw(st.integers(0, 9)))
        # A row that is shown already changes its place or goes: no other may be shown twice or not at all for it.
        victim = found[-1]
        touched.add(victim)
        if drawn.draw(st.booleans()):
            connection.execute("DELETE FROM rows WHERE id = ?", (victim,))
        else:
            connection.execute("UPDATE rows SET data = '{}', created_at = 99 WHERE id = ?", (victim,))

    shown = walk(connection, question(None, order), limit, meanwhile)
    untouched = [row_id for row_id in shown if row_id not in touched]
    assert len(untouched) == len(set(untouched))
    old = {f"{at:02}" for at in range(len(data))}
    assert old <= set(shown)
    by_id = {f"{at:02}": row for at, row in enumerate(data)}
    expected = ordered(by_id, order) if order else sorted(by_id, key=lambda row_id: (-(int(row_id) // 2), row_id))
    assert [row_id for row_id in untouched if row_id in old] == [one for one in expected if one not in touched]


def same(found: Any, exact: Any) -> bool:
    if exact is None or isinstance(exact, str | bool):
        return type(found) is type(exact) and bool(found == exact)
    if type(found) is int:
        return bool(found == exact)
    return isclose(found, float(exact), rel_tol=1e-9, abs_tol=1e-9)


SCALARS = [
    {"kind": "count"},
    *({"kind": kind, "field": name} for kind in ("sum", "avg", "min", "max") for name in NAMES["number"]),
    *({"kind": kind, "field": name} for kind in ("min", "max") for name in NAMES["string"]),
]


def is_too_large(exact: Any) -> bool:
    """True where a sum of integers is beyond int64, or numbers come near the end of what a double holds."""
    return exact is not None and not -(2**63) <= exact < 2**63


@given(st.lists(tables, min_size=1, max_size=3), some_filters, st.sampled_from(SCALARS))
@settings(derandomize=True, max_examples=150, deadline=None)
def test_an_aggregate_is_the_exact_value_over_all_sources(several: list[Any], asked_filter: Any, asked: Any):
    connection, sources = attached(several)
    data = [row for one in several for row in chosen(one, asked_filter)]
    kind, field = asked["kind"], asked.get("field")
    exact = aggregated(data, kind, field)
    filter_ = None if asked_filter is None else filters.parse(asked_filter, SCHEMA)
    aggregator = aggregate.parse(asked, [source.schema for source in sources])
    values = [row[field] for row in data if field and kind_of(row.get(field)) == "number"]
    if kind in {"sum", "avg"} and any(isinstance(value, float) and abs(value) > 1e300 for value in values):
        return
    if kind == "sum" and is_too_large(exact) and not any(isinstance(value, float) for value in values):
        with pytest.raises(AggregateRefused):
            aggregate.run(connection, sources, filter_, aggregator)
        return
    found = aggregate.run(connection, sources, filter_, aggregator)
    assert found["kind"] == ("count" if kind == "count" else "value")
    largest = max((abs(value) for value in values), default=0)
    if kind in {"sum", "avg"} and any(isinstance(value, float) for value in values):
        # Fractions are added up as doubles: the error is relative to what was added, not to what is left.
        assert isfinite(found["value"])
        assert abs(found["value"] - exact) <= float(largest) * 1e-12 + 1e-300
    else:
        assert same(found["value"], exact), (found, exact)


def attached(several: list[Any]) -> tuple[apsw.Connection, list[Source]]:
    connection = apsw.Connection(":memory:")
    sources = []
    for number, data in enumerate(several):
        name = f"s{number}"
        connection.execute(f"ATTACH ':memory:' AS {name}")
        table(data, attached=name, connection=connection)
        sources.append(Source(SCHEMA, name))
    return connection, sources


@given(st.lists(tables, min_size=1, max_size=2), some_filters, st.sampled_from(ORDERING), st.integers(1, 4))
@settings(derandomize=True, max_examples=120, deadline=None)
def test_groups_are_the_rows_by_type_and_value(several: list[Any], asked_filter: Any, field: str, limit: int):
    connection, sources = attached(several)
    data = [row for one in several for row in chosen(one, asked_filter)]
    filter_ = None if asked_filter is None else filters.parse(asked_filter, SCHEMA)
    asked = {"kind": "group_by", "by_field": field, "inner": {"kind": "max", "field": "select"}}
    groups = grouped(data, field)
    whole = aggregate.run(connection, sources, filter_, aggregate.parse(asked, [SCHEMA]))
    assert {(kind_of(one["key"]), one["key"]): one["count"] for one in whole["value"]} == {
        key: len(members) for key, members in groups.items()
    }
    for one in whole["value"]:
        members = groups[kind_of(one["key"]), one["key"]]
        assert same(one["value"], aggregated(members, "max", "select"))
    assert "truncated" not in whole
    part = aggregate.run(connection, sources, filter_, aggregate.parse({**asked, "limit": limit}, [SCHEMA]))
    assert part["value"] == whole["value"][:limit]
    assert part.get("truncated", False) == (len(groups) > limit)
    having = {"type": "gte", "field": "count", "value": 2}
    many = aggregate.run(connection, sources, filter_, aggregate.parse({**asked, "having": having}, [SCHEMA]))
    assert many["value"] == [one for one in whole["value"] if one["count"] >= 2]
    order = [{"field": "count", "direction": "desc"}, {"field": "key"}]
    largest = aggregate.run(connection, sources, filter_, aggregate.parse({**asked, "order": order}, [SCHEMA]))
    assert largest["value"] == sorted(whole["value"], key=lambda one: -one["count"])
