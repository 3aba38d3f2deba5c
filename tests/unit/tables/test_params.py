"""Parameters of an alias are refused early and by name, and a schema that is not understood is not taken."""

from typing import Any

import pytest

from convmem.errors import Invalid, ParamsRequired
from convmem.limits import FIELD_CODE_POINTS_MAX
from convmem.tables import params

SCHEMA = {
    "type": "object",
    "properties": {
        "state": {"type": "string", "enum": ["open", "done"], "description": "which"},
        "n": {"type": "integer", "minimum": 1, "maximum": 10, "default": 5},
        "tags": {"type": "array", "items": {"type": "string", "minLength": 1}, "maxItems": 2},
        "note": {"type": ["string", "null"]},
    },
    "required": ["state"],
}
# A schema of one parameter, values that it takes, and values that it refuses.
CASES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({}, [1, "a", None, True, [], {}], []),
    ({"type": "string"}, ["", "a"], [1, True, [], {}]),
    ({"type": "boolean"}, [True, False], [0, 1, "true"]),
    ({"type": "integer"}, [0, 1.0, -(2**63)], [1.5, True, "1"]),
    ({"type": "number"}, [0, 1.5], [True, "1"]),
    ({"type": "array"}, [[], [1]], ["a", {}]),
    ({"type": "object"}, [{}], [[], "a"]),
    ({"type": ["string", "null"]}, ["a", None], [1]),
    ({"enum": [1, "a", None]}, [1, 1.0, "a", None], [True, 2, "A"]),
    ({"enum": [True]}, [True], [1]),
    ({"minimum": 1, "maximum": 2}, [1, 2, "text"], [0.5, 3]),
    ({"minLength": 1, "maxLength": 2}, ["é", "ab", 7], ["", "abc"]),
    ({"minItems": 1, "maxItems": 2}, [[1], [1, 2], 7], [[], [1, 2, 3]]),
    ({"items": {"type": "integer"}}, [[], [1, 2], "a"], [["a"], [1, None]]),
]


@pytest.mark.parametrize(("schema", "right", "wrong"), CASES)
def test_a_parameter_is_what_its_schema_says(schema: dict[str, Any], right: list[Any], wrong: list[Any]):
    whole = {"properties": {"p": schema}}
    params.check_schema(whole)
    for value in right:
        assert params.given(whole, {"p": value}) == {"p": value}
    for value in wrong:
        with pytest.raises(Invalid) as refused:
            params.given(whole, {"p": value})
        assert refused.value.details["field"].startswith("params.p")


def test_every_type_and_bound_has_a_case():
    said = {name for schema, _, _ in CASES for name in schema}
    stated = [schema.get("type", []) for schema, _, _ in CASES]
    types = {name for names in stated for name in (names if isinstance(names, list) else [names])}
    assert set(params.BOUNDS) | {"type", "enum", "items"} == said
    assert set(params.TYPES) <= types


@pytest.mark.parametrize("given", [None, {}, {"n": 1}, {"state": None}])
def test_what_is_missing_is_named(given: dict[str, Any] | None):
    with pytest.raises(ParamsRequired) as refused:
        params.given(SCHEMA, given)
    assert refused.value.details == {"missing": ["state"]}
    with pytest.raises(ParamsRequired) as refused:
        params.given(["state", "n", "other"], given)
    assert "state" in refused.value.details["missing"] or given == {"state": None}


def test_everything_that_is_missing_is_named_at_once():
    with pytest.raises(ParamsRequired) as refused:
        params.given(["a", "b", "c"], {"b": 1})
    assert refused.value.details == {"missing": ["a", "c"]}


def test_defaults_are_filled_in_and_null_is_the_same_as_nothing():
    assert params.given(SCHEMA, {"state": "open"}) == {"state": "open", "n": 5}
    assert params.given(SCHEMA, {"state": "open", "n": None, "note": None}) == {"state": "open", "n": 5, "note": None}


def test_a_parameter_that_is_not_named_is_refused_unless_all_are_welcome():
    for schema in (SCHEMA, ["state"]):
        with pytest.raises(Invalid) as refused:
            params.given(schema, {"state": "open", "stat": 1})
        assert refused.value.details == {"field": "params.stat"}
    welcome = {**SCHEMA, "additionalProperties": True}
    params.check_schema(welcome)
    assert params.given(welcome, {"state": "open", "stat": 1})["stat"] == 1
    assert params.given(None, {"anything": 1}) == {"anything": 1}
    assert params.given(None, None) == {}


def test_a_fault_deep_inside_is_named_by_its_path():
    with pytest.raises(Invalid) as refused:
        params.given(SCHEMA, {"state": "open", "tags": ["a", ""]})
    assert refused.value.details == {"field": "params.tags.1"}


def test_a_long_name_is_not_repeated_whole():
    with pytest.raises(Invalid) as refused:
        params.given(["a"], {"a": 1, "x" * 5_000: 1})
    assert len(refused.value.message) < FIELD_CODE_POINTS_MAX + 40


def test_a_default_does_not_change_the_schema():
    given = params.given(SCHEMA, {"state": "open"})
    given["n"] = 7
    assert params.given(SCHEMA, {"state": "open"})["n"] == 5


@pytest.mark.parametrize("schema", [[], ["a", "ключ"], {}, SCHEMA, {"$schema": "x", "title": "t"}])
def test_a_schema_that_is_understood_is_taken(schema: Any):
    params.check_schema(schema)


@pytest.mark.parametrize(
    ("schema", "field"),
    [
        ("state", "params_schema"),
        (None, "params_schema"),
        (["a", "a"], "params_schema"),
        (["a", 1], "params_schema"),
        ([""], "params_schema"),
        ({"type": "array"}, "params_schema.type"),
        ({"properties": []}, "params_schema.properties"),
        ({"required": "a"}, "params_schema.required"),
        ({"additionalProperties": {}}, "params_schema.additionalProperties"),
        ({"$ref": "#"}, "params_schema.$ref"),
        ({"properties": {"a": 1}}, "params_schema.properties.a"),
        ({"properties": {"a": {"type": "text"}}}, "params_schema.properties.a.type"),
        ({"properties": {"a": {"type": []}}}, "params_schema.properties.a.type"),
        ({"properties": {"a": {"type": [1]}}}, "params_schema.properties.a.type"),
        ({"properties": {"a": {"pattern": "(a+)+$"}}}, "params_schema.properties.a.pattern"),
        ({"properties": {"a": {"enum": []}}}, "params_schema.properties.a.enum"),
        ({"properties": {"a": {"minimum": "1"}}}, "params_schema.properties.a.minimum"),
        ({"properties": {"a": {"items": {"$ref": "#"}}}}, "params_schema.properties.a.items.$ref"),
        ({"properties": {"a": {"type": "string", "default": 1}}}, "params_schema.properties.a.default"),
    ],
)
def test_a_schema_that_is_not_understood_is_refused_where_it_is_wrong(schema: Any, field: str):
    with pytest.raises(Invalid) as refused:
        params.check_schema(schema)
    assert refused.value.details == {"field": field}
