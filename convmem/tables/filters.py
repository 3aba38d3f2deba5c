"""A filter of rows: read from JSON and checked against a schema, and what it says of a row.

The idea: a filter says yes or no of every row, never "unknown". A field that is missing, null or of another type than
the value it is compared with is simply not equal to it, not less, not like; so `ne` is the contrary of `eq`, and `not`
of anything. Types never mix: true, 1 and "1" differ; 1 and 1.0 are one number, compared exactly.

The shape is that of the filters which other programs left in directories of tables, with their aliases and templates:
an object with `type`. One shape only: two ways to say the same would have to be kept alike for ever.

Rejected: SQL's three values (a row without the field would be in neither a filter nor its contrary).
"""

from collections.abc import Callable, Mapping
from math import isfinite
from operator import ge, gt, le, lt
from typing import Any, NamedTuple, NoReturn

from convmem.errors import Invalid
from convmem.limits import (
    FIELD_CODE_POINTS_MAX,
    FILTER_LEVELS_MAX,
    FILTER_NODES_MAX,
    FILTER_VALUES_MAX,
    INT64_MAX,
    INT64_MIN,
    LIKE_PATTERN_BYTES_MAX,
)
from convmem.tables.likeness import CHARACTERS_BETWEEN_LOOKS, Look, do_not_look, is_like
from convmem.tables.model import FIELD_TYPES, FieldType, TableSchema

ESCAPE = "\\"


class Condition(NamedTuple):
    """One field and what is asked of it. `value` is a scalar, for `in` a tuple of them, for `exists` true or false."""

    type: str
    field: str
    value: Any


class Group(NamedTuple):
    """`and`, `or` of at least one part, `not` of exactly one."""

    type: str
    parts: tuple[Any, ...]


Filter = Condition | Group

SCALARS: tuple[FieldType, ...] = ("string", "number", "boolean")
ORDERED: tuple[FieldType, ...] = ("string", "number")


def kind_of(value: Any) -> str | None:
    """The type of a JSON value as a schema calls it; None for null."""
    return _KINDS.get(type(value))


_KINDS: Mapping[type, str] = {
    str: "string",
    bool: "boolean",
    int: "number",
    float: "number",
    list: "array",
    tuple: "array",
    dict: "object",
}


def is_same(one: Any, other: Any) -> bool:
    """True if two scalars are of one type and equal."""
    return kind_of(one) == kind_of(other) and bool(one == other)


def _compares(how: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    return lambda found, value: kind_of(found) == kind_of(value) and how(found, value)


def _contains(found: Any, value: Any) -> bool:
    return isinstance(found, list) and any(is_same(one, value) for one in found)


class Operator(NamedTuple):
    """A test: which types of fields it may stand on, where its value stands, and what it says of a field's value."""

    of: tuple[FieldType, ...]
    argument: str
    says: Callable[[Any, Any], bool]


OPERATORS: Mapping[str, Operator] = {
    "eq": Operator(SCALARS, "value", is_same),
    "ne": Operator(SCALARS, "value", lambda found, value: not is_same(found, value)),
    "lt": Operator(ORDERED, "value", _compares(lt)),
    "lte": Operator(ORDERED, "value", _compares(le)),
    "gt": Operator(ORDERED, "value", _compares(gt)),
    "gte": Operator(ORDERED, "value", _compares(ge)),
    "in": Operator(SCALARS, "values", lambda found, values: any(is_same(found, value) for value in values)),
    "like": Operator(("string",), "pattern", lambda found, value: isinstance(found, str) and is_like(found, value)),
    "array_contains": Operator(("array",), "value", _contains),
    "array_not_contains": Operator(("array",), "value", lambda found, value: not _contains(found, value)),
    "exists": Operator(FIELD_TYPES, "value", lambda found, value: (found is not None) == value),
}
# A group, and where its parts stand.
GROUPS: Mapping[str, str] = {"and": "filters", "or": "filters", "not": "filter"}


def parse(value: Any, schema: TableSchema, at: str = "filter") -> Filter:
    """A filter as JSON, checked against a schema. Invalid whose `field` is the path of the fault, from `at` on."""
    return _Reading({field.name: field.type for field in schema.fields}).read(value, at, 1)


def matches(filter_: Filter, data: Mapping[str, Any], look: Look = do_not_look) -> bool:
    """What a filter says of the data of a row. `look` is called before each test of a long text, and may raise."""
    if isinstance(filter_, Condition):
        found = data.get(filter_.field)
        if isinstance(found, str) and len(found) > CHARACTERS_BETWEEN_LOOKS:
            look()
        return OPERATORS[filter_.type].says(found, filter_.value)
    said = (matches(part, data, look) for part in filter_.parts)
    if filter_.type == "not":
        return not next(said)
    return all(said) if filter_.type == "and" else any(said)


def refuse(at: str, what: str) -> NoReturn:
    """Invalid for what stands at a path; a path holds no names of a caller's, so it is short."""
    raise Invalid(f"{at} {what}", field=at)


def shown(name: str) -> str:
    """A name that a caller gave, short enough for a sentence."""
    return name if len(name) <= FIELD_CODE_POINTS_MAX else name[:FIELD_CODE_POINTS_MAX] + "…"


def object_at(value: Any, at: str, parts: tuple[str, ...], optional: tuple[str, ...] = ()) -> dict[str, Any]:
    """An object with all of `parts`, perhaps some of `optional` and nothing else. Invalid with the path."""
    if not isinstance(value, dict):
        refuse(at, "must be an object")
    for name in value:
        if name not in parts and name not in optional:
            refuse(at, f'has no part "{shown(str(name))}"; it may have {", ".join((*parts, *optional))}')
    for name in parts:
        if name not in value:
            refuse(f"{at}.{name}", "is required")
    return value


def field_at(value: Any, at: str, types: Mapping[str, str]) -> str:
    """The name of a field that the schema has. Invalid with the path."""
    if not isinstance(value, str):
        refuse(at, "must be the name of a field")
    if value not in types:
        refuse(at, f'names "{shown(value)}", which is no field of the schema')
    return value


def scalar_at(value: Any, at: str, types: tuple[str, ...]) -> Any:
    """A string, number or boolean of one of these types, that JSON and the rows can hold. Invalid with the path."""
    if value is None:
        refuse(at, "must not be null; ask with exists whether a field is there")
    if kind_of(value) not in types:
        refuse(at, f"must be a {' or '.join(types)}")
    if type(value) is int and not INT64_MIN <= value <= INT64_MAX:
        refuse(at, "must fit in 64 bits")
    if type(value) is float and not isfinite(value):
        refuse(at, "must be a finite number")
    return value


class _Reading:
    """One filter being read: how many nodes it has had so far."""

    def __init__(self, types: Mapping[str, str]) -> None:
        self._types = types
        self._nodes = 0

    def read(self, value: Any, at: str, level: int) -> Filter:
        if level > FILTER_LEVELS_MAX:
            refuse(at, f"is too deep: a filter has at most {FILTER_LEVELS_MAX} levels")
        self._nodes += 1
        if self._nodes > FILTER_NODES_MAX:
            refuse(at, f"is too much: a filter has at most {FILTER_NODES_MAX} tests and groups")
        if not isinstance(value, dict):
            refuse(at, "must be an object")
        if "type" not in value:
            refuse(f"{at}.type", f"is required: one of {', '.join((*OPERATORS, *GROUPS))}")
        kind = value["type"]
        if isinstance(kind, str) and kind in GROUPS:
            return self._group(value, kind, at, level)
        if isinstance(kind, str) and kind in OPERATORS:
            return self._test(value, kind, at)
        refuse(f"{at}.type", f"must be one of {', '.join((*OPERATORS, *GROUPS))}")

    def _group(self, value: dict[str, Any], kind: str, at: str, level: int) -> Group:
        where = GROUPS[kind]
        given = object_at(value, at, ("type", where))[where]
        if where == "filter":
            return Group(kind, (self.read(given, f"{at}.{where}", level + 1),))
        if not isinstance(given, list) or not given:
            refuse(f"{at}.{where}", "must be a list of at least one filter")
        parts = (self.read(part, f"{at}.{where}.{number}", level + 1) for number, part in enumerate(given))
        return Group(kind, tuple(parts))

    def _test(self, value: dict[str, Any], kind: str, at: str) -> Condition:
        operator = OPERATORS[kind]
        where = operator.argument
        if kind == "exists":
            given = object_at(value, at, ("type", "field"), (where,)).get(where, True)
        else:
            given = object_at(value, at, ("type", "field", where))[where]
        field = field_at(value["field"], f"{at}.field", self._types)
        type_ = self._types[field]
        if type_ not in operator.of:
            refuse(f"{at}.field", f"names a field of type {type_}; {kind} is for {' or '.join(operator.of)}")
        return Condition(kind, field, self._argument(kind, given, f"{at}.{where}", type_))

    def _argument(self, kind: str, given: Any, at: str, type_: str) -> Any:
        if kind == "in":
            if not isinstance(given, list) or not 1 <= len(given) <= FILTER_VALUES_MAX:
                refuse(at, f"must be a list of 1 to {FILTER_VALUES_MAX} values")
            return tuple(scalar_at(value, f"{at}.{number}", (type_,)) for number, value in enumerate(given))
        if kind == "like":
            return _pattern(scalar_at(given, at, ("string",)), at)
        if kind == "exists":
            return scalar_at(given, at, ("boolean",))
        return scalar_at(given, at, SCALARS if type_ == "array" else (type_,))


def _pattern(pattern: str, at: str) -> str:
    if len(pattern.encode()) > LIKE_PATTERN_BYTES_MAX:
        refuse(at, f"must be at most {LIKE_PATTERN_BYTES_MAX} bytes of UTF-8")
    if (len(pattern) - len(pattern.rstrip(ESCAPE))) % 2:
        refuse(at, f"must not end with a {ESCAPE} that escapes nothing")
    return pattern
