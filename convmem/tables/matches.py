"""Which rows `replace` takes away: those whose fields have just these values.

`{"state": "done", "owner": null}` is the AND of an equality for each field; null means that the field is not there. An
empty match would take away everything, so it is refused.
"""

from typing import Any

from convmem.tables.filters import SCALARS, Condition, Filter, Group, field_at, kind_of, refuse
from convmem.tables.model import TableSchema


def parse(match: Any, schema: TableSchema, at: str = "match") -> Filter:
    """A match as a filter, checked against the schema. Invalid with the path of the fault."""
    if not isinstance(match, dict) or not match:
        refuse(at, "must be an object that names at least one field")
    types = {field.name: field.type for field in schema.fields}
    return Group("and", tuple(_condition(name, value, types, at) for name, value in match.items()))


def _condition(name: Any, value: Any, types: dict[str, Any], at: str) -> Condition:
    type_ = types[field_at(name, at, types)]
    if value is None:
        return Condition("exists", name, False)
    if type_ not in SCALARS:
        refuse(f"{at}.{name}", f"names a field of type {type_}, which cannot be matched")
    if kind_of(value) != type_:
        refuse(f"{at}.{name}", f"must be null or a value of type {type_}")
    return Condition("eq", name, value)
