"""What an alias asks of those who run it: its `params_schema`, in one of two forms, and the check against it.

    ["state", "n"]                                     names, all of them required
    {"properties": {"n": {"type": "integer"}}, …}      a small part of JSON Schema (draft-07)

The idea: the schema is there to refuse early and by name. So a parameter that it does not name is refused too (a
misspelt one would be a silent default), unless `additionalProperties` is true; and a keyword that is not understood is
refused when the alias is made, never ignored. Null for a parameter that may not be null is the same as none: many
clients send null for what their model left out.

Rejected: a JSON Schema library (its `pattern` takes exponential time, its `$ref` reads other documents).
"""

from collections.abc import Callable, Mapping
from typing import Any

from convmem.errors import Invalid, ParamsRequired
from convmem.limits import FIELD_CODE_POINTS_MAX

# What each type of JSON Schema is among values of JSON; true is no number, 1.0 is an integer.
TYPES: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
    "integer": lambda value: (
        not isinstance(value, bool) and (isinstance(value, int) or (isinstance(value, float) and value.is_integer()))
    ),
}
# A bound, the type that it speaks of, how a value is measured, and how its refusal is said; whether it is a lower one.
BOUNDS: Mapping[str, tuple[str, Callable[[Any], float], str, bool]] = {
    "minimum": ("number", lambda value: value, "must be at least {}", True),
    "maximum": ("number", lambda value: value, "must be at most {}", False),
    "minLength": ("string", len, "must have at least {} characters", True),
    "maxLength": ("string", len, "must have at most {} characters", False),
    "minItems": ("array", len, "must have at least {} entries", True),
    "maxItems": ("array", len, "must have at most {} entries", False),
}
REMARKS = frozenset({"title", "description", "examples", "$comment", "format", "default"})
OF_A_PARAMETER = REMARKS | {"type", "enum", "items", *BOUNDS}
OF_THE_WHOLE = REMARKS - {"default"} | {"type", "properties", "required", "additionalProperties", "$schema"}


def check_schema(params_schema: Any) -> None:
    """Invalid, with the path of what is wrong, unless the schema can be understood whole."""
    where = "params_schema"
    if isinstance(params_schema, list):
        _refuse_unless(_are_names(params_schema), where, "must list different names")
        return
    _check_keywords(params_schema, where, OF_THE_WHOLE)
    _refuse_unless(params_schema.get("type", "object") == "object", f"{where}.type", "must be object")
    properties = params_schema.get("properties", {})
    _refuse_unless(isinstance(properties, dict), f"{where}.properties", "must be an object")
    for name, schema in properties.items():
        _check_parameter(schema, f"{where}.properties.{name}")
        if "default" in schema:
            _check_value(schema["default"], schema, f"{where}.properties.{name}.default")
    _refuse_unless(_are_names(params_schema.get("required", [])), f"{where}.required", "must list different names")
    is_open = params_schema.get("additionalProperties", False)
    _refuse_unless(isinstance(is_open, bool), f"{where}.additionalProperties", "must be true or false")


def given(params_schema: Any, params: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parameters with defaults filled in, for a schema that `check_schema` accepts (None: any parameters will do).

    ParamsRequired with `missing`, all names of it, or Invalid with the path of the first that is wrong.
    """
    found = dict(params or {})
    if params_schema is None:
        return found
    if isinstance(params_schema, list):
        properties: Mapping[str, Any] = {name: {} for name in params_schema}
        required, is_open = params_schema, False
    else:
        properties = params_schema.get("properties", {})
        required = params_schema.get("required", [])
        is_open = params_schema.get("additionalProperties", False)
    for name, schema in properties.items():
        if name in found and found[name] is None and not _may_be_null(schema):
            del found[name]
        if name not in found and "default" in schema:
            found[name] = schema["default"]
    if missing := [name for name in required if name not in found]:
        raise ParamsRequired(f"params must hold {', '.join(missing)}", missing=missing)
    for name, value in found.items():
        _refuse_unless(is_open or name in properties or name in required, f"params.{name}", "is no parameter here")
        if name in properties:
            _check_value(value, properties[name], f"params.{name}")
    return found


def _check_keywords(schema: Any, where: str, known: frozenset[str]) -> None:
    _refuse_unless(isinstance(schema, dict), where, "must be an object")
    for keyword in schema:
        _refuse_unless(keyword in known, f"{where}.{keyword}", "is not understood here")


def _check_parameter(schema: Any, where: str) -> None:
    _check_keywords(schema, where, OF_A_PARAMETER)
    types = _types(schema)
    is_known = bool(types) or "type" not in schema
    is_known = is_known and all(isinstance(name, str) and name in TYPES for name in types)
    _refuse_unless(is_known, f"{where}.type", f"must be one of {', '.join(TYPES)}, or a list of them")
    enum = schema.get("enum", [None])
    _refuse_unless(isinstance(enum, list) and bool(enum), f"{where}.enum", "must be a list of values")
    for keyword in BOUNDS.keys() & schema.keys():
        _refuse_unless(TYPES["number"](schema[keyword]), f"{where}.{keyword}", "must be a number")
    if "items" in schema:
        _check_parameter(schema["items"], f"{where}.items")


def _check_value(value: Any, schema: Mapping[str, Any], where: str) -> None:
    types = _types(schema)
    is_of_type = not types or any(TYPES[name](value) for name in types)
    _refuse_unless(is_of_type, where, f"must be {' or '.join(types)}")
    if "enum" in schema:
        _refuse_unless(any(_is_same(value, one) for one in schema["enum"]), where, "must be one of those listed")
    for keyword, (kind, measured, sentence, is_lower) in BOUNDS.items():
        if keyword in schema and TYPES[kind](value):
            bound, size = schema[keyword], measured(value)
            _refuse_unless(size >= bound if is_lower else size <= bound, where, sentence.format(bound))
    if "items" in schema and isinstance(value, list):
        for number, inner in enumerate(value):
            _check_value(inner, schema["items"], f"{where}.{number}")


def _types(schema: Mapping[str, Any]) -> list[Any]:
    stated = schema.get("type", [])
    return stated if isinstance(stated, list) else [stated]


def _may_be_null(schema: Mapping[str, Any]) -> bool:
    return "null" in _types(schema) or ("type" not in schema and None in schema.get("enum", [None]))


def _is_same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1."""
    return (
        type(one) is type(other) and one == other if isinstance(one, bool) or isinstance(other, bool) else one == other
    )


def _are_names(names: Any) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) and name for name in names) and _differ(names)


def _differ(names: list[str]) -> bool:
    return len(set(names)) == len(names)


def _refuse_unless(is_right: bool, field: str, sentence: str) -> None:
    if not is_right:
        field = field if len(field) <= FIELD_CODE_POINTS_MAX else field[:FIELD_CODE_POINTS_MAX] + "…"
        raise Invalid(f"{field} {sentence}", field=field)
