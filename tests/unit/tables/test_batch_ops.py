"""Operations read from JSON: each has its arguments and no other, and the fault is named by its path."""

from typing import Any

import pytest

from convmem.errors import Invalid
from convmem.tables import batch_ops
from convmem.tables.batch_ops import DeleteData, InsertData, Query, UpdateData, parse

HASH = "A" * 64


def test_both_spellings_mean_the_same():
    for one, other in (("data_insert", "create"), ("data_update", "update"), ("data_delete", "delete")):
        rest = {"id": "a", "data": {}} if one != "data_insert" else {"data": {}}
        rest = {"id": "a"} if one == "data_delete" else rest
        assert parse([{"op": one, **rest}]) == parse([{"type": other, **rest}])
    assert set(batch_ops.OTHER_SPELLINGS.values()) <= set(batch_ops.READERS)


def test_arguments_are_taken_as_they_are_meant():
    found = parse(
        [
            {"op": "create", "data": {"a": 1}, "table": None},
            {"op": "update", "id": "0a", "data": {}, "mode": "replace", "expected_sha256": HASH},
            {"op": "delete", "id": "x" * 36},
            {"op": "query", "sql": "DELETE FROM rows", "params": [1]},
        ]
    )
    assert found.ops == (
        InsertData("data_insert", {"a": 1}),
        UpdateData("data_update", "0a", {}, "replace", HASH.lower()),
        DeleteData("data_delete", "x" * 36, None),
        Query("query", "DELETE FROM rows", [1]),
    )
    assert (found.table, found.changes_schema, found.creates_schema) == (None, False, False)
    assert parse([{"op": "schema_create", "fields": []}]).creates_schema


@pytest.mark.parametrize(
    ("op", "field"),
    [
        ({}, "ops.0.op"),
        ({"op": 1}, "ops.0.op"),
        ({"op": "drop"}, "ops.0.op"),
        ({"op": "create"}, "ops.0.data"),
        ({"op": "create", "data": []}, "ops.0.data"),
        ({"op": "create", "data": {}, "id": "a"}, "ops.0.id"),
        ({"op": "update", "id": "zz", "data": {}}, "ops.0.id"),
        ({"op": "update", "id": "a", "data": {}, "mode": "patch"}, "ops.0.mode"),
        ({"op": "delete", "id": "a", "expected_sha256": "no"}, "ops.0.expected_sha256"),
        ({"op": "replace", "match": {}, "items": {}}, "ops.0.items"),
        ({"op": "replace", "match": {}, "items": [1]}, "ops.0.items"),
        ({"op": "query", "sql": 1}, "ops.0.sql"),
        ({"op": "query", "sql": "x" * 70_000}, "ops.0.sql"),
        ({"op": "query", "sql": "", "params": "x"}, "ops.0.params"),
        ({"op": "schema_create", "fields": [], "adopt": "yes"}, "ops.0.adopt"),
        ({"op": "schema_delete", "fields": []}, "ops.0.fields"),
        ({"op": "create", "data": {}, "table": 1}, "ops.0.table"),
    ],
)
def test_a_fault_is_named_by_its_path(op: dict[str, Any], field: str):
    with pytest.raises(Invalid) as caught:
        parse([op])
    assert caught.value.details["field"] == field
