"""A filter becomes SQL that holds nothing of the caller's, and finds what the filter says."""

from typing import Any

import pytest

from convmem.limits import FILTER_NODES_MAX, FILTER_VALUES_MAX
from convmem.tables import conditions, filters
from convmem.tables.model import FIELD_TYPES, Field, TableSchema
from tests.support.table_oracle import SCHEMA, TYPES, table

NAMES = (
    "a.b",
    'a"b',
    "a'b",
    "$",
    "$.a",
    "select",
    "é",
    "e\u0301",
    "日本",
    "x y",
    "[0]",
    "\\",
    "a.b.c",
    "?",
    ":n",
    "--",
)


def found(data: list[Any], asked: Any, schema: TableSchema = SCHEMA) -> list[int]:
    piece = conditions.to_sql(filters.parse(asked, schema))
    sql = f"SELECT id FROM rows WHERE {piece.sql} ORDER BY id"
    return [int(row_id) for (row_id,) in table(data).execute(sql, piece.bindings)]


@pytest.mark.parametrize("name", NAMES)
def test_any_name_is_a_name(name: str):
    schema = TableSchema(table="t", fields=(Field(name=name, type="string"),))
    data = [{name: "x"}, {name: "y"}, {"other": "x"}, {"a": {"b": "x", "c": "x"}}]
    asked = {"type": "eq", "field": name, "value": "x"}
    assert found(data, asked, schema) == [0]


def test_the_sql_is_the_same_whatever_is_named_and_asked():
    made = {
        conditions.to_sql(
            filters.parse(
                {"type": "eq", "field": name, "value": value},
                TableSchema(table="t", fields=(Field(name=name, type="string"),)),
            )
        ).sql
        for name in NAMES
        for value in ("x", "'", '"; DROP TABLE rows; --')
    }
    assert len(made) == 1


def test_text_behind_a_nul_counts():
    data = [{'a."b"': "x\0y"}, {'a."b"': "x"}, {'a."b"': "x\0z"}]
    for value, expected in (("x", [1]), ("x\0y", [0]), ("x\0", [])):
        assert found(data, {"type": "eq", "field": 'a."b"', "value": value}) == expected
        assert found(data, {"type": "in", "field": 'a."b"', "values": [value]}) == expected
        assert found(data, {"type": "like", "field": 'a."b"', "pattern": value}) == expected
    assert found(data, {"type": "like", "field": 'a."b"', "pattern": "%y"}) == [0]
    assert found(data, {"type": "like", "field": 'a."b"', "pattern": "x_z"}) == [2]
    assert found(data, {"type": "gt", "field": 'a."b"', "value": "x\0y"}) == [2]


def test_null_is_as_good_as_missing():
    data = [{"select": None}, {}, {"select": 0}]
    assert found(data, {"type": "exists", "field": "select"}) == [2]
    assert found(data, {"type": "exists", "field": "select", "value": False}) == [0, 1]
    assert found(data, {"type": "ne", "field": "select", "value": 0}) == [0, 1]
    assert found(data, {"type": "lte", "field": "select", "value": 0}) == [2]


def test_types_do_not_mix():
    data = [{"日本": [value], "select": value} for value in (1, 1.0, True, "1", None, [1], {"a": 1})]
    for value, expected in ((1, [0, 1]), (True, [2]), ("1", [3])):
        assert found(data, {"type": "array_contains", "field": "日本", "value": value}) == expected
        others = [number for number in range(len(data)) if number not in expected]
        assert found(data, {"type": "array_not_contains", "field": "日本", "value": value}) == others
    assert found(data, {"type": "eq", "field": "select", "value": 1}) == [0, 1]
    assert found(data, {"type": "in", "field": "select", "values": [1, 7]}) == [0, 1]
    assert found(data, {"type": "lte", "field": "select", "value": 1}) == [0, 1]
    assert found([{"日本": "[1]"}, {"日本": {"a": 1}}], {"type": "array_contains", "field": "日本", "value": 1}) == []


def test_integers_are_exact():
    data = [{"select": 2**53}, {"select": 2**53 + 1}, {"select": float(2**53)}, {"select": -(2**63)}]
    assert found(data, {"type": "eq", "field": "select", "value": 2**53 + 1}) == [1]
    assert found(data, {"type": "in", "field": "select", "values": [2**53 + 1]}) == [1]
    assert found(data, {"type": "eq", "field": "select", "value": 2**53}) == [0, 2]
    assert found(data, {"type": "lt", "field": "select", "value": -(2**63) + 1}) == [3]


@pytest.mark.parametrize("text", ["", "{", "[1]", '"x"', "1", "null", '{"select": 1,}', "NaN", "\0"])
def test_data_that_is_no_json_object_is_in_no_filter_and_stops_none(text: str):
    asked = {"type": "eq", "field": "select", "value": 1}
    assert found([text, {"select": 1}], asked) == [1]
    assert found([text, {"select": 1}], {"type": "not", "filter": asked}) == []


def test_the_largest_filter_of_ten_tables_is_still_one_statement():
    values = [2**63 - 1 - number for number in range(FILTER_VALUES_MAX)]
    parts = [{"type": "in", "field": "select", "values": values}] * (FILTER_NODES_MAX - 2)
    asked = {"type": "or", "filters": [*parts, {"type": "exists", "field": "select"}]}
    assert found([{"select": 1}, {}, {"select": values[-1]}], asked) == [0, 2]
    likes = [{"type": "like", "field": "é", "pattern": f"{number}%"} for number in range(FILTER_NODES_MAX - 1)]
    piece = conditions.to_sql(filters.parse({"type": "or", "filters": likes}, SCHEMA))
    sql = " UNION ALL ".join([f"SELECT id FROM rows WHERE {piece.sql}"] * 10)
    assert len(table([{"é": "7"}]).execute(sql, piece.bindings * 10).fetchall()) == 10


def test_every_operator_and_every_type_has_its_sql():
    assert set(conditions._CONDITIONS) == set(filters.OPERATORS)
    assert set(conditions.IS_OF_TYPE) == set(FIELD_TYPES)


@pytest.mark.parametrize("field", TYPES)
def test_the_value_of_a_field_is_of_its_type_or_nothing(field: str):
    values = {"string": "x", "number": 1, "boolean": True, "array": [1], "object": {"a": 1}}
    expected = {"string": "x", "number": 1, "boolean": 1, "array": "[1]", "object": '{"a":1}'}
    piece = conditions.field_value(field, TYPES[field])
    data = [{field: value} for value in (*values.values(), None)]
    shown = [value for (value,) in table(data).execute(f"SELECT {piece.sql} FROM rows ORDER BY id", piece.bindings)]
    assert shown == [expected[TYPES[field]] if kind == TYPES[field] else None for kind in (*values, None)]
