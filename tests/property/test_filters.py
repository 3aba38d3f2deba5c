"""A filter in SQL and the same filter in Python say the same of every row, whatever names and values they hold."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.tables import conditions, filters, likeness
from tests.support.table_oracle import SCHEMA, asked_filters, is_like, patterns, rows, string_values, table, tables

pytestmark = pytest.mark.slow


def found(connection: Any, filter_: filters.Filter) -> list[str]:
    piece = conditions.to_sql(filter_)
    sql = f"SELECT id FROM rows WHERE {piece.sql} ORDER BY id"
    return [row_id for (row_id,) in connection.execute(sql, piece.bindings)]


@given(tables, st.lists(asked_filters, min_size=1, max_size=6))
@settings(derandomize=True, max_examples=250, deadline=None)
def test_sql_and_python_find_the_same_rows(data: list[Any], asked: list[Any]):
    connection = table(data)
    for one in asked:
        filter_ = filters.parse(one, SCHEMA)
        assert found(connection, filter_) == [
            f"{number:02}" for number, row in enumerate(data) if filters.matches(filter_, row)
        ]


@given(tables, asked_filters)
@settings(derandomize=True, max_examples=100, deadline=None)
def test_a_row_is_in_a_filter_or_in_its_contrary(data: list[Any], asked: Any):
    connection = table(data)
    filter_, contrary = (filters.parse(one, SCHEMA) for one in (asked, {"type": "not", "filter": asked}))
    assert sorted(found(connection, filter_) + found(connection, contrary)) == [f"{at:02}" for at in range(len(data))]


@given(string_values.filter(lambda text: len(text) < 12), patterns)
@settings(derandomize=True, max_examples=600, deadline=None)
def test_like_means_what_it_says_in_python_and_in_sql(text: str, pattern: str):
    condition, bindings = likeness.condition("v", pattern)
    connection = table([])
    ((in_sql,),) = connection.execute(f"SELECT {condition} FROM (SELECT ? AS v)", (*bindings, text))
    assert bool(in_sql) == likeness.is_like(text, pattern) == is_like(text, pattern)


@given(rows)
@settings(derandomize=True, max_examples=200, deadline=None)
def test_every_scalar_of_a_row_finds_the_row_and_is_not_unequal_to_itself(row: dict[str, Any]):
    connection = table([row])
    for field in SCHEMA.fields:
        value = row.get(field.name)
        if filters.kind_of(value) != field.type or field.type in {"array", "object"}:
            continue
        for kind, expected in (("eq", ["00"]), ("ne", [])):
            asked = {"type": kind, "field": field.name, "value": value}
            assert found(connection, filters.parse(asked, SCHEMA)) == expected
        assert found(connection, filters.parse({"type": "in", "field": field.name, "values": [value]}, SCHEMA))
