"""Which fields are shown is checked before a row is read."""

from typing import Any

import pytest

from convmem.errors import Invalid
from convmem.tables import selection
from tests.support.table_oracle import SCHEMA

DATA = {"unknown": 1, "select": 2, "é": "x", "e\u0301": 3}


@pytest.mark.parametrize("asked", [None, {"mode": "all"}])
def test_all_is_all_that_the_row_has(asked: Any):
    assert selection.parse(asked, SCHEMA).of(DATA) == DATA


def test_a_list_is_what_it_names_in_the_order_of_the_row():
    asked = {"mode": "list", "fields": ["é", "select", "é", "key"]}
    assert list(selection.parse(asked, SCHEMA).of(DATA).items()) == [("select", 2), ("é", "x")]
    assert selection.parse({"mode": "list", "fields": []}, SCHEMA).of(DATA) == {}


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("all", "fields"),
        (["select"], "fields"),
        ({}, "fields.mode"),
        ({"mode": "some"}, "fields.mode"),
        ({"mode": ["list"], "fields": []}, "fields.mode"),
        ({"mode": "all", "fields": ["select"]}, "fields"),
        ({"mode": "list"}, "fields.fields"),
        ({"mode": "list", "fields": "select"}, "fields.fields"),
        ({"mode": "list", "fields": ["select", "unknown"]}, "fields.fields.1"),
        ({"mode": "list", "fields": ["select", 1]}, "fields.fields.1"),
    ],
)
def test_a_fault_is_refused_where_it_stands(asked: Any, path: str):
    with pytest.raises(Invalid) as refused:
        selection.parse(asked, SCHEMA)
    assert refused.value.details["field"] == path


def test_every_mode_is_understood():
    assert set(selection.MODES) == {"all", "list"}
