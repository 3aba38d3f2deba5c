"""A filter is read by rule: what it may be, where a fault stands, and what it says of a row."""

from typing import Any

import pytest

from convmem.errors import Invalid
from convmem.limits import (
    FIELD_CODE_POINTS_MAX,
    FILTER_LEVELS_MAX,
    FILTER_NODES_MAX,
    FILTER_VALUES_MAX,
    LIKE_PATTERN_BYTES_MAX,
)
from convmem.tables import filters
from convmem.tables.model import FIELD_TYPES, Field, TableSchema

SCHEMA = TableSchema(
    table="issues",
    fields=(
        Field(name="state", type="string"),
        Field(name="n", type="number"),
        Field(name="is open", type="boolean"),
        Field(name="tags", type="array"),
        Field(name="more", type="object"),
    ),
)
OPEN = {"type": "eq", "field": "state", "value": "open"}


def says(asked: Any, data: dict[str, Any]) -> bool:
    return filters.matches(filters.parse(asked, SCHEMA), data)


def condition(kind: str, field: str, **rest: Any) -> dict[str, Any]:
    return {"type": kind, "field": field, **rest}


@pytest.mark.parametrize(
    ("asked", "inside", "outside"),
    [
        (OPEN, {"state": "open"}, {"state": "Open"}),
        (condition("ne", "state", value="open"), {}, {"state": "open"}),
        (condition("eq", "n", value=2**53 + 1), {"n": 2**53 + 1}, {"n": 2**53}),
        (condition("eq", "n", value=2**53 + 1), {"n": 2**53 + 1}, {"n": float(2**53)}),
        (condition("eq", "n", value=1), {"n": 1.0}, {"n": True}),
        (condition("eq", "n", value=1), {"n": 1}, {"n": "1"}),
        (condition("eq", "is open", value=True), {"is open": True}, {"is open": 1}),
        (condition("lt", "n", value=0), {"n": -1}, {"n": 0}),
        (condition("lte", "n", value=0), {"n": 0}, {"n": 1}),
        (condition("gt", "state", value="a"), {"state": "é"}, {"state": "Z"}),
        (condition("gte", "n", value=0), {"n": 0}, {}),
        (condition("gte", "n", value=0), {"n": 0}, {"n": None}),
        (condition("lt", "n", value=5), {"n": 1}, {"n": "1"}),
        (condition("in", "n", values=[1, 2]), {"n": 2}, {"n": 3}),
        (condition("in", "is open", values=[False]), {"is open": False}, {"is open": 0}),
        (condition("like", "state", pattern="o%"), {"state": "Open"}, {"state": "reopen"}),
        (condition("array_contains", "tags", value=1), {"tags": ["1", 1]}, {"tags": ["1", True]}),
        (condition("array_contains", "tags", value="a"), {"tags": ["a"]}, {"tags": ["ab", ["a"]]}),
        (condition("array_not_contains", "tags", value="a"), {}, {"tags": ["a"]}),
        (condition("exists", "more"), {"more": {}}, {"more": None}),
        (condition("exists", "n", value=False), {}, {"n": 0}),
        ({"type": "not", "filter": OPEN}, {}, {"state": "open"}),
        ({"type": "and", "filters": [OPEN, condition("exists", "n")]}, {"state": "open", "n": 1}, {"state": "open"}),
        ({"type": "or", "filters": [OPEN, condition("exists", "n")]}, {"n": 1}, {"state": "done"}),
    ],
)
def test_what_a_filter_says(asked: Any, inside: dict[str, Any], outside: dict[str, Any]):
    assert says(asked, inside)
    assert not says(asked, outside)


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("state = open", "filter"),
        ([OPEN], "filter"),
        ({}, "filter.type"),
        ({"type": "between", "field": "n"}, "filter.type"),
        ({"type": ["eq"], "field": "n"}, "filter.type"),
        ({"type": "eq", "value": 1}, "filter.field"),
        ({"type": "eq", "field": "n"}, "filter.value"),
        ({**OPEN, "values": []}, "filter"),
        ({"type": "and", "filters": [], "field": "n"}, "filter"),
        ({"type": "and", "filters": []}, "filter.filters"),
        ({"type": "or", "filters": OPEN}, "filter.filters"),
        ({"type": "not", "filters": [OPEN]}, "filter"),
        ({"type": "not", "filter": [OPEN]}, "filter.filter"),
        ({"type": "and", "filters": [OPEN, condition("eq", "stat", value="x")]}, "filter.filters.1.field"),
        ({"type": "not", "filter": {"type": "or", "filters": [condition("eq", "n", value="1")]}}, None),
        (condition("eq", "unknown", value=1), "filter.field"),
        (condition("eq", 7, value=1), "filter.field"),
        (condition("eq", "state", value=1), "filter.value"),
        (condition("eq", "state", value=None), "filter.value"),
        (condition("eq", "n", value=True), "filter.value"),
        (condition("eq", "n", value="1"), "filter.value"),
        (condition("eq", "n", value=2**63), "filter.value"),
        (condition("eq", "n", value=float("nan")), "filter.value"),
        (condition("lt", "n", value=float("inf")), "filter.value"),
        (condition("eq", "is open", value=0), "filter.value"),
        (condition("eq", "tags", value=["a"]), "filter.field"),
        (condition("eq", "more", value={}), "filter.field"),
        (condition("lt", "is open", value=True), "filter.field"),
        (condition("like", "n", pattern="1%"), "filter.field"),
        (condition("like", "state", pattern=1), "filter.pattern"),
        (condition("like", "state", pattern="a\\"), "filter.pattern"),
        (condition("like", "state", pattern="é" * (LIKE_PATTERN_BYTES_MAX // 2 + 1)), "filter.pattern"),
        (condition("in", "n", values=[]), "filter.values"),
        (condition("in", "n", values=1), "filter.values"),
        (condition("in", "n", values=[1, "1"]), "filter.values.1"),
        (condition("in", "n", values=[1] * (FILTER_VALUES_MAX + 1)), "filter.values"),
        (condition("array_contains", "state", value="a"), "filter.field"),
        (condition("array_contains", "tags", value=["a"]), "filter.value"),
        (condition("array_contains", "tags", value=None), "filter.value"),
        (condition("exists", "n", value=1), "filter.value"),
        (condition("exists", "nosuch"), "filter.field"),
    ],
)
def test_a_fault_is_refused_where_it_stands(asked: Any, path: str | None):
    with pytest.raises(Invalid) as refused:
        filters.parse(asked, SCHEMA)
    assert refused.value.details["field"] == (path or "filter.filter.filters.0.value")
    assert refused.value.message.startswith(refused.value.details["field"])


def test_a_filter_of_another_argument_names_that():
    with pytest.raises(Invalid) as refused:
        filters.parse({}, SCHEMA, "ops.3.filter")
    assert refused.value.details["field"] == "ops.3.filter.type"


def nested(levels: int) -> Any:
    return OPEN if levels == 1 else {"type": "not", "filter": nested(levels - 1)}


def test_the_bounds_are_reached_and_not_passed():
    filters.parse(nested(FILTER_LEVELS_MAX), SCHEMA)
    filters.parse({"type": "or", "filters": [OPEN] * (FILTER_NODES_MAX - 1)}, SCHEMA)
    filters.parse(condition("in", "n", values=list(range(FILTER_VALUES_MAX))), SCHEMA)
    filters.parse(condition("like", "state", pattern="%" * LIKE_PATTERN_BYTES_MAX), SCHEMA)
    for too_much in (nested(FILTER_LEVELS_MAX + 1), {"type": "or", "filters": [OPEN] * FILTER_NODES_MAX}, nested(400)):
        with pytest.raises(Invalid):
            filters.parse(too_much, SCHEMA)


def test_a_name_in_a_refusal_is_cut():
    with pytest.raises(Invalid) as refused:
        filters.parse(condition("eq", "x" * 100_000, value=1), SCHEMA)
    assert len(refused.value.message) < 2 * FIELD_CODE_POINTS_MAX


def test_every_operator_stands_on_a_type_and_every_type_can_be_asked_for():
    of = [set(operator.of) for operator in filters.OPERATORS.values()]
    assert all(of)
    assert set.union(*of) == set(FIELD_TYPES)
    assert filters.OPERATORS["exists"].of == FIELD_TYPES
    assert not set(filters.OPERATORS) & set(filters.GROUPS)


def test_twins_of_a_name_are_two_fields():
    schema = TableSchema(table="t", fields=(Field(name="é", type="string"), Field(name="e\u0301", type="string")))
    asked = filters.parse(condition("eq", "é", value="x"), schema)
    assert filters.matches(asked, {"é": "x"})
    assert not filters.matches(asked, {"e\u0301": "x"})
