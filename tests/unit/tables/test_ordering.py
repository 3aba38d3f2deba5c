"""An order is read by rule, and what it sorts by fits a cursor."""

from typing import Any

import pytest

from convmem.errors import Invalid
from convmem.limits import ORDER_FIELDS_MAX, ORDER_TEXT_BYTES
from convmem.tables import ordering
from convmem.tables.model import Field, TableSchema
from convmem.tables.ordering import NEWEST_FIRST, Key, Place
from tests.support.table_oracle import SCHEMA, table


def sorted_ids(data: list[Any], asked: Any, schema: TableSchema = SCHEMA) -> list[str]:
    order = ordering.parse(asked, schema)
    keys = ordering.columns(order)
    sql = f"SELECT id{keys.sql} FROM rows ORDER BY {ordering.order_sql(order)}"
    return [row[0] for row in table(data).execute(sql, keys.bindings)]


@pytest.mark.parametrize("nothing", [None, []])
def test_without_an_order_the_newest_comes_first_and_then_the_id(nothing: Any):
    assert ordering.parse(nothing, SCHEMA) == NEWEST_FIRST
    # Two rows each were made in one second.
    assert sorted_ids([{}] * 4, nothing) == ["02", "03", "00", "01"]


def test_a_direction_is_asc_unless_it_is_said():
    assert ordering.parse([{"field": "select"}, {"field": "é", "direction": "desc"}], SCHEMA) == (
        Key("select", "number", False),
        Key("é", "string", True),
    )


def test_rows_can_be_ordered_by_their_times_unless_a_field_has_that_name():
    assert ordering.parse([{"field": "updated_at"}], SCHEMA) == (Key("updated_at", "time", False),)
    assert sorted_ids([{}] * 4, [{"field": "created_at"}]) == ["00", "01", "02", "03"]
    schema = TableSchema(table="t", fields=(Field(name="created_at", type="string"),))
    assert ordering.parse([{"field": "created_at"}], schema) == (Key("created_at", "string", False),)
    assert sorted_ids([{"created_at": "b"}, {"created_at": "a"}], [{"field": "created_at"}], schema) == ["01", "00"]


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("select", "order_by"),
        ({"field": "select"}, "order_by"),
        (["select"], "order_by.0"),
        ([{}], "order_by.0.field"),
        ([{"field": "select"}, {"field": "nosuch"}], "order_by.1.field"),
        ([{"field": "日本"}], "order_by.0.field"),
        ([{"field": "key"}], "order_by.0.field"),
        ([{"field": "select", "direction": "down"}], "order_by.0.direction"),
        ([{"field": "select", "direction": "ASC"}], "order_by.0.direction"),
        ([{"field": "select", "direction": None}], "order_by.0.direction"),
        ([{"field": "select", "desc": True}], "order_by.0"),
        ([{"field": "select"}, {"field": "select", "direction": "desc"}], "order_by.1.field"),
        ([{"field": "select"}] * (ORDER_FIELDS_MAX + 1), "order_by"),
    ],
)
def test_a_fault_is_refused_where_it_stands(asked: Any, path: str):
    with pytest.raises(Invalid) as refused:
        ordering.parse(asked, SCHEMA)
    assert refused.value.details["field"] == path


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("select", [None, -(2**63), -1.5, 0, 2**53, 2**53 + 1, 1e300]),
        ("é", [None, "", "\0", "\0a", "A", "a", "aa", "e\u0301", "é", "日本", "\U0001f600"]),
        ("$[0]", [None, False, True]),
    ],
)
def test_values_have_an_order_and_what_is_no_value_comes_first(field: str, values: list[Any]):
    others: list[Any] = [{field: None}, {field: []}, {field: {"a": 1}}, "no JSON"]
    data = [*({} if value is None else {field: value} for value in values), *others]
    ids = [f"{number:02}" for number in range(len(data))]
    nothing, something = [ids[0], *ids[len(values) :]], ids[1 : len(values)]
    assert sorted_ids(data, [{"field": field}]) == [*nothing, *something]
    assert sorted_ids(data, [{"field": field, "direction": "desc"}]) == [*something[::-1], *nothing]


def test_only_the_first_bytes_of_a_text_count():
    long = "é" * (ORDER_TEXT_BYTES // 2)
    data = [{"é": long + "b"}, {"é": long + "a"}, {"é": long[:-1] + "a"}]
    assert sorted_ids(data, [{"field": "é"}]) == ["02", "00", "01"]
    order = ordering.parse([{"field": "é"}], SCHEMA)
    keys = ordering.columns(order)
    ((key,),) = table([{"é": "日" * 1_000}]).execute(f"SELECT k0 FROM (SELECT id{keys.sql} FROM rows)", keys.bindings)
    assert len(key) == 1 + ORDER_TEXT_BYTES


def test_what_comes_behind_a_place_is_what_is_sorted_behind_it():
    order = (Key("select", "number", True), Key("é", "string", False))
    data = [{"select": 1, "é": "a"}, {"select": 1, "é": "a"}, {"select": 1}, {"é": "b"}, {"select": 2}, {}]
    keys = ordering.columns(order)
    rows = f"SELECT id{keys.sql} FROM rows"
    connection = table(data)
    sql = f"{rows} ORDER BY {ordering.order_sql(order)}"
    places = [Place(tuple(row[1:]), row[0]) for row in connection.execute(sql, keys.bindings)]
    assert len({place.id for place in places}) == len(data)
    for number, place in enumerate(places):
        behind = ordering.behind(order, place)
        found = connection.execute(f"SELECT id FROM ({rows}) WHERE {behind.sql}", (*keys.bindings, *behind.bindings))
        assert {row_id for (row_id,) in found} == {later.id for later in places[number + 1 :]}
