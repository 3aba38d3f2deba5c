"""A row holds what its caller meant, exactly, or it is refused by the name of the field."""

import hashlib
import time
from typing import Any

import pytest

from convmem.errors import ContentTooLarge, Invalid
from convmem.limits import JSON_LEVELS_MAX, ROW_DATA_BYTES_MAX, ROW_FIELDS_MAX
from convmem.tables.data import ARTICLED, IS_OF_TYPE, canonical, checked, merged, sha256, stored
from convmem.tables.model import FIELD_TYPES, Field, TableSchema

ANY = TableSchema(table="t", fields=())
SCHEMA = TableSchema(
    table="t",
    fields=(
        Field(name="name", type="string", required=True),
        *(Field(name=f"a {kind}", type=kind) for kind in FIELD_TYPES),
    ),
)
OF_TYPE: dict[str, list[Any]] = {
    "string": ["", "1", "a\0b", "true"],
    "number": [0, 1, -1.5, 2**53 + 1, 2**63 - 1, -(2**63), -0.0, 1e308],
    "boolean": [True, False],
    "array": [[], [1, "1", True, None, {}]],
    "object": [{}, {"": {"a": [None]}}],
}


def refused_field(schema: TableSchema, data: Any) -> str:
    with pytest.raises(Invalid) as caught:
        checked(schema, data)
    field: str = caught.value.details["field"]
    assert caught.value.message.startswith(field)
    return field


def nested(levels: int) -> Any:
    return [nested(levels - 1)] if levels else 1


def test_the_tables_of_types_are_total():
    assert set(IS_OF_TYPE) == set(ARTICLED) == set(FIELD_TYPES) == set(OF_TYPE)


@pytest.mark.parametrize("kind", FIELD_TYPES)
def test_a_field_takes_the_values_of_its_type_and_no_other(kind: str):
    for other, values in OF_TYPE.items():
        for value in values:
            data = {"name": "x", f"a {kind}": value}
            if other == kind:
                assert checked(SCHEMA, data) == data
                assert type(checked(SCHEMA, data)[f"a {kind}"]) is type(value)
            else:
                assert refused_field(SCHEMA, data) == f"data.a {kind}"


def test_a_required_field_is_there_and_not_null():
    assert refused_field(SCHEMA, {}) == "data.name"
    assert refused_field(SCHEMA, {"name": None}) == "data.name"
    assert checked(SCHEMA, {"name": ""}) == {"name": ""}


def test_an_optional_null_is_dropped_and_an_unknown_one_is_kept():
    assert checked(SCHEMA, {"name": "x", "a number": None, "else": None}) == {"name": "x", "else": None}


def test_fields_come_first_in_the_order_of_the_schema_and_others_as_given():
    row = checked(SCHEMA, {"z": 1, "a object": {"b": 1, "a": 2}, "y": 2, "name": "x"})
    assert stored(row) == b'{"name":"x","a object":{"b":1,"a":2},"z":1,"y":2}'


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**100, float("nan"), float("inf"), -float("inf")])
def test_a_number_that_would_not_stay_exact_is_refused_wherever_it_stands(value: Any):
    assert refused_field(SCHEMA, {"name": "x", "a number": value}) == "data.a number"
    assert refused_field(ANY, {"u": [{}, {"v": value}]}) == "data.u.1.v"


@pytest.mark.parametrize("value", ["\ud83d", b"x", (1,), {1}, object(), {7: 1}, {"\ud83d": 1}])
def test_what_is_no_json_is_refused(value: Any):
    assert refused_field(ANY, {"u": value}) == "data.u"
    assert refused_field(ANY, {"u": [value]}) == "data.u.0"


@pytest.mark.parametrize("name", ["a\0", "\ud83d", 7, None])
def test_a_key_that_is_no_text_is_refused(name: Any):
    assert refused_field(ANY, {name: 1}) == "data"


@pytest.mark.parametrize("data", [None, [], "{}", 7])
def test_data_is_an_object(data: Any):
    assert refused_field(ANY, data) == "data"


def test_data_may_be_as_deep_as_json_and_no_deeper():
    assert checked(ANY, {"a": nested(JSON_LEVELS_MAX - 1)})
    assert refused_field(ANY, {"a": nested(JSON_LEVELS_MAX)}).startswith("data.a.0.0")


def test_so_many_fields_and_no_more():
    data = {str(place): place for place in range(ROW_FIELDS_MAX)}
    assert checked(ANY, data) == data
    assert refused_field(ANY, {**data, "more": 1}) == "data"


def test_the_size_is_that_of_the_json():
    room = ROW_DATA_BYTES_MAX - len('{"a":""}')
    assert len(stored(checked(ANY, {"a": "x" * room}))) == ROW_DATA_BYTES_MAX
    for text in ("x" * (room + 1), "é" * (room // 2 + 1), "\n" * (room // 2 + 1)):
        with pytest.raises(ContentTooLarge) as caught:
            checked(ANY, {"a": text})
        assert caught.value.details["bytes"] > caught.value.details["bytes_max"] == ROW_DATA_BYTES_MAX


def test_long_keys_over_many_values_cost_no_more_than_they_weigh():
    data = {"k" * 500_000: [1] * 200_000}
    started = time.process_time()
    assert checked(ANY, data) == data
    assert len(refused_field(ANY, {"k" * 500_000: [*[1] * 200_000, 2**63]})) < 200
    assert time.process_time() - started < 10


def test_the_hash_does_not_depend_on_the_order_of_keys_but_on_every_value():
    one, other = {"b": 1, "a": {"d": 1, "c": [1, 2]}}, {"a": {"c": [1, 2], "d": 1}, "b": 1}
    assert canonical(one) == canonical(other) == b'{"a":{"c":[1,2],"d":1},"b":1}'
    assert sha256(one) == sha256(other) == hashlib.sha256(canonical(one)).hexdigest()
    assert len({sha256({"a": value}) for value in (1, True, "1", [1], {"1": 1}, 1.5, None)}) == 7
    assert canonical({"\U0001f600": 1, "\uffff": 2, "z": 3}) == '{"z":3,"\uffff":2,"\U0001f600":1}'.encode()


def test_a_patch_keeps_what_it_does_not_name_and_takes_away_by_null():
    data = {"name": "x", "a object": {"b": 1, "c": 2}, "a number": 1}
    assert merged(data, {"a object": {"d": None}, "a number": None, "new": 1, "none": None}) == {
        "name": "x",
        "a object": {"d": None},
        "new": 1,
    }
    assert refused_field(SCHEMA, merged(data, {"name": None})) == "data.name"
    assert merged({"else": None}, {"name": "x"}) == {"else": None, "name": "x"}
    assert data == {"name": "x", "a object": {"b": 1, "c": 2}, "a number": 1}
