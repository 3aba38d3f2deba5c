"""Sums are exact, groups keep types apart, and what no number holds is refused."""

from typing import Any

import apsw
import pytest

from convmem.errors import AggregateRefused, Invalid
from convmem.limits import AGGREGATE_SOURCES_MAX, GROUPS_LIMIT_DEFAULT, GROUPS_LIMIT_MAX
from convmem.tables import aggregate, filters
from convmem.tables.aggregate import Source
from convmem.tables.model import Field, TableSchema
from tests.support.table_oracle import SCHEMA, table

N, TEXT, FLAG, LIST = "select", "é", "$[0]", "日本"


def run(data: list[Any], asked: Any, filter_: Any = None) -> Any:
    only = None if filter_ is None else filters.parse(filter_, SCHEMA)
    return aggregate.run(table(data), [Source(SCHEMA)], only, aggregate.parse(asked, [SCHEMA]))


def value(data: list[Any], kind: str, field: str = N) -> Any:
    found = run(data, {"kind": kind, "field": field})
    assert found["kind"] == "value"
    return found["value"]


def numbers(*values: Any) -> list[Any]:
    return [{N: value} for value in values]


def groups(data: list[Any], field: str, **more: Any) -> list[Any]:
    return run(data, {"kind": "group_by", "by_field": field, **more})["value"]


def test_rows_are_counted_whatever_they_hold():
    assert run([{}, {N: None}, "no JSON", {N: 1}], {"kind": "count"}) == {"kind": "count", "value": 4}
    assert run([{}, {N: 1}], {"kind": "count"}, {"type": "exists", "field": N}) == {"kind": "count", "value": 1}


@pytest.mark.parametrize(
    ("values", "total"),
    [
        ([2**53, 1], 2**53 + 1),
        ([2**63 - 1], 2**63 - 1),
        ([2**63 - 1, 1, -1], 2**63 - 1),
        ([2**63 - 1, 2**63 - 1, -(2**63), -(2**63), 2], 0),
        ([-(2**63)], -(2**63)),
        ([-1, -1], -2),
        ([-(2**32), 2**32 - 1], -1),
        ([0.5, 1], 1.5),
        ([1.0, 2], 3.0),
        ([], None),
        (["1", True, None, [1]], None),
        ([1, "2", True, None, {}], 1),
    ],
)
def test_a_sum_is_exact_and_of_numbers_only(values: list[Any], total: Any):
    found = value(numbers(*values), "sum")
    assert found == total
    assert type(found) is type(total)


@pytest.mark.parametrize("values", [[2**63 - 1, 1], [-(2**63), -1], [2**63 - 1] * 3, [1e308, 1e308]])
def test_a_sum_that_no_number_holds_is_refused(values: list[Any]):
    with pytest.raises(AggregateRefused):
        value(numbers(*values), "sum")
    with pytest.raises(AggregateRefused):
        groups(numbers(*values), FLAG, inner={"kind": "sum", "field": N})


def test_a_sum_with_fractions_may_be_larger_than_an_integer():
    assert value(numbers(2**63 - 1, 2**63 - 1, 0.5), "sum") == float(2**64)


def test_an_average_is_a_number_even_where_the_sum_is_none():
    assert value(numbers(2**63 - 1, 2**63 - 1), "avg") == float(2**63)
    assert value(numbers(1, 2, "3", None), "avg") == 1.5
    assert value(numbers(2, 2), "avg") == 2.0
    assert value([], "avg") is None
    assert value(numbers(1e308, 1e308), "avg") == 1e308


def test_the_least_and_the_greatest_are_values_of_rows():
    assert value(numbers(2**53 + 1, 2**53, "9", True), "max") == 2**53 + 1
    assert value(numbers(3, -(2**63), 0.5), "min") == -(2**63)
    texts = [{TEXT: text} for text in ("b", "a\0z", "a", "é")]
    assert (value(texts, "min", TEXT), value(texts, "max", TEXT)) == ("a", "é")
    assert value(texts[1:2], "max", TEXT) == "a\0z"
    assert value([], "max") is None


def test_keys_of_several_types_are_several_groups():
    data = [{N: 1}, {N: 1.0}, {N: True}, {N: "1"}, {N: None}, {}, {N: [1]}, {N: False}, {N: 0}, {N: -0.0}]
    found = groups(data, N)
    assert [(type(one["key"]), one["key"], one["count"]) for one in found] == [
        (type(None), None, 3),
        (bool, False, 1),
        (bool, True, 1),
        (int, 0, 2),
        (int, 1, 2),
        (str, "1", 1),
    ]
    for twins in ([1, 1.0], [1.0, 1], [1.0, 1, 1.0]):
        (one,) = groups(numbers(*twins), N)
        assert (type(one["key"]), one["count"]) == (int, len(twins))
    assert groups([{N: -0.0}], N) == [{"key": 0.0, "count": 1}]
    assert str(groups([{N: -0.0}], N)[0]["key"]) == "0.0"


def test_groups_of_texts_and_flags():
    data = [{TEXT: "a", N: 1}, {TEXT: "a\0b", N: 2}, {TEXT: "a", N: 5}, {FLAG: True}]
    assert groups(data, TEXT, inner={"kind": "sum", "field": N}) == [
        {"key": None, "count": 1, "value": None},
        {"key": "a", "count": 2, "value": 6},
        {"key": "a\0b", "count": 1, "value": 2},
    ]
    assert groups(data, FLAG) == [{"key": None, "count": 3}, {"key": True, "count": 1}]
    assert groups(data, FLAG, inner={"kind": "count"})[0] == {"key": None, "count": 3, "value": 3}


def test_having_and_order_speak_of_key_count_and_value():
    data = [{TEXT: text, N: n} for text, n in (("a", 1), ("a", 2), ("b", 9), ("c", 1), ("c", 1), ("c", 1))]
    more: dict[str, Any] = {"inner": {"kind": "sum", "field": N}}
    by_value = [{"field": "value", "direction": "desc"}, {"field": "count", "direction": "desc"}]

    def keys(**asked: Any) -> list[Any]:
        return [one["key"] for one in groups(data, TEXT, **more, **asked)]

    assert keys(having={"type": "gte", "field": "count", "value": 2}) == ["a", "c"]
    assert keys(having={"type": "eq", "field": "value", "value": 3}) == ["a", "c"]
    assert keys(having={"type": "eq", "field": TEXT, "value": "b"}) == ["b"]
    assert keys(having={"type": "in", "field": "key", "values": ["b", "c"]}) == ["b", "c"]
    assert keys(order=by_value) == ["b", "c", "a"]
    assert keys(order=[{"field": TEXT, "direction": "desc"}]) == ["c", "b", "a"]
    assert keys(order=by_value, limit=1) == ["b"]
    # Other programs write what they leave out as null.
    assert keys(order=[]) == keys(order=None, having=None, limit=None) == ["a", "b", "c"]


@pytest.mark.parametrize("name", ["count", "value", "key"])
def test_a_field_may_be_called_like_a_part_of_a_group(name: str):
    schema = TableSchema(table="t", fields=(Field(name=name, type="string"), Field(name="n", type="number")))
    connection = table([{name: "a", "n": 7}, {name: "b", "n": 1}, {name: "b", "n": 1}])

    def keys(having: Any, **more: Any) -> list[Any]:
        asked = {"kind": "group_by", "by_field": name, "having": having, **more}
        found = aggregate.run(connection, [Source(schema)], None, aggregate.parse(asked, [schema]))
        return [one["key"] for one in found["value"]]

    assert keys({"type": "eq", "field": "count", "value": 2}) == ["b"]
    assert keys({"type": "eq", "field": "key", "value": "a"}) == ["a"]
    inner = {"kind": "max", "field": "n"}
    assert keys({"type": "eq", "field": "value", "value": 7}, inner=inner) == ["a"]
    if name == "value":
        assert keys({"type": "eq", "field": "value", "value": "a"}) == ["a"]


def test_groups_that_are_left_out_are_said_to_be():
    data = numbers(*range(GROUPS_LIMIT_DEFAULT + 1))
    found = run(data, {"kind": "group_by", "by_field": N})
    assert found["truncated"] is True
    assert [one["key"] for one in found["value"]] == list(range(GROUPS_LIMIT_DEFAULT))
    whole = run(data, {"kind": "group_by", "by_field": N, "limit": GROUPS_LIMIT_DEFAULT + 1})
    assert "truncated" not in whole
    assert len(whole["value"]) == GROUPS_LIMIT_DEFAULT + 1


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("count", "aggregator"),
        ({}, "aggregator.kind"),
        ({"kind": "median", "field": N}, "aggregator.kind"),
        ({"kind": ["sum"], "field": N}, "aggregator.kind"),
        ({"kind": "count", "field": N}, "aggregator"),
        ({"kind": "sum"}, "aggregator.field"),
        ({"kind": "sum", "field": "nosuch"}, "aggregator.field"),
        ({"kind": "sum", "field": TEXT}, "aggregator.field"),
        ({"kind": "min", "field": FLAG}, "aggregator.field"),
        ({"kind": "avg", "field": [N]}, "aggregator.field"),
        ({"kind": "group_by"}, "aggregator.by_field"),
        ({"kind": "group_by", "by_field": LIST}, "aggregator.by_field"),
        ({"kind": "group_by", "by_field": N, "field": N}, "aggregator"),
        ({"kind": "group_by", "by_field": N, "inner": {"kind": "group_by", "by_field": N}}, "aggregator.inner.kind"),
        ({"kind": "group_by", "by_field": N, "inner": {"kind": "sum", "field": TEXT}}, "aggregator.inner.field"),
        (
            {"kind": "group_by", "by_field": N, "having": {"type": "gt", "field": "value", "value": 1}},
            "aggregator.having.field",
        ),
        (
            {"kind": "group_by", "by_field": N, "having": {"type": "gt", "field": TEXT, "value": "a"}},
            "aggregator.having.field",
        ),
        (
            {"kind": "group_by", "by_field": N, "having": {"type": "gt", "field": "count", "value": "1"}},
            "aggregator.having.value",
        ),
        ({"kind": "group_by", "by_field": N, "order": [{"field": "value"}]}, "aggregator.order.0.field"),
        ({"kind": "group_by", "by_field": N, "order": "count"}, "aggregator.order"),
        ({"kind": "group_by", "by_field": N, "limit": 0}, "aggregator.limit"),
        ({"kind": "group_by", "by_field": N, "limit": True}, "aggregator.limit"),
        ({"kind": "group_by", "by_field": N, "limit": GROUPS_LIMIT_MAX + 1}, "aggregator.limit"),
    ],
)
def test_a_fault_is_refused_where_it_stands(asked: Any, path: str):
    with pytest.raises(Invalid) as refused:
        aggregate.parse(asked, [SCHEMA])
    assert refused.value.details["field"] == path


def test_every_source_s_schema_is_checked():
    here = TableSchema(table="here", fields=(Field(name="n", type="number"), Field(name="m", type="number")))
    there = TableSchema(table="there", fields=(Field(name="n", type="string"),))
    for asked, field in (
        ({"kind": "sum", "field": "n"}, "aggregator.field"),
        ({"kind": "max", "field": "n"}, "aggregator.field"),
        ({"kind": "sum", "field": "m"}, "aggregator.field"),
        ({"kind": "group_by", "by_field": "n"}, "aggregator.by_field"),
    ):
        aggregate.parse(asked, [here])
        with pytest.raises(Invalid) as refused:
            aggregate.parse(asked, [here, there])
        assert refused.value.details["field"] == field


def test_several_tables_are_one_and_too_many_are_refused():
    connection = apsw.Connection(":memory:")
    sources = [Source(SCHEMA, f"s{number}") for number in range(AGGREGATE_SOURCES_MAX)]
    for number, source in enumerate(sources):
        connection.execute(f"ATTACH ':memory:' AS {source.attached}")
        table(numbers(number, 100), attached=source.attached, connection=connection)
    asked = aggregate.parse({"kind": "sum", "field": N}, [SCHEMA])
    only = filters.parse({"type": "lt", "field": N, "value": 100}, SCHEMA)
    assert aggregate.run(connection, sources, only, asked) == {"kind": "value", "value": sum(range(10))}
    for wrong in ([*sources, Source(SCHEMA)], []):
        with pytest.raises(AggregateRefused):
            aggregate.run(connection, wrong, None, asked)


def test_every_method_is_known_by_its_name():
    assert set(aggregate.KINDS) == {"count", "sum", "avg", "min", "max", "group_by"}


def test_having_on_long_texts_is_ended_when_the_time_is_over():
    looks = 0

    def is_over() -> bool:
        nonlocal looks
        looks += 1
        return looks > 1_000

    def asked_again_and_again(connection: apsw.Connection, asked: Any) -> None:
        for _ in range(50):
            assert aggregate.run(connection, [Source(SCHEMA)], None, asked)["value"] == []

    connection = table([{TEXT: "a" * 100_000}])
    connection.set_progress_handler(is_over, 50)
    tests = [{"type": "like", "field": TEXT, "pattern": f"%{number}"} for number in range(100)]
    having = {"type": "or", "filters": tests}
    asked = aggregate.parse({"kind": "group_by", "by_field": TEXT, "having": having}, [SCHEMA])
    for _ in range(3):
        with pytest.raises(apsw.InterruptError):
            asked_again_and_again(connection, asked)
        looks = 0
    short = aggregate.parse(
        {"kind": "group_by", "by_field": N, "having": {"type": "gt", "field": N, "value": 1}}, [SCHEMA]
    )
    asked_again_and_again(connection, short)
