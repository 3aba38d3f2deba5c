"""Which fields of a row a caller wants to see: `{"mode": "all"}` or `{"mode": "list", "fields": […]}`.

Checked against the schema before any row is read, so that a misspelt name is a refusal and not an empty answer. The id
and the times of a row are always shown.

Rejected: refusing names by what one row holds (another row would answer differently).
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

from convmem.tables.filters import field_at, object_at, refuse
from convmem.tables.model import TableSchema

# How each mode is written: which parts it has beside `mode`.
MODES: Mapping[str, tuple[str, ...]] = {"all": (), "list": ("fields",)}


class Selection(NamedTuple):
    """The names of the fields to show; None: all that the row has, also those that the schema does not know."""

    names: frozenset[str] | None = None

    def of(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The part of a row's data to show, in its order."""
        if self.names is None:
            return dict(data)
        return {name: value for name, value in data.items() if name in self.names}


EVERYTHING = Selection()


def parse(value: Any, schema: TableSchema, at: str = "fields") -> Selection:
    """A selection as JSON, all if there is none. Invalid with the path of the fault."""
    if value is None:
        return EVERYTHING
    if not isinstance(value, dict):
        refuse(at, "must be an object")
    mode = value.get("mode")
    if not isinstance(mode, str) or mode not in MODES:
        refuse(f"{at}.mode", f"must be {' or '.join(MODES)}")
    object_at(value, at, ("mode", *MODES[mode]))
    if mode == "all":
        return EVERYTHING
    names = value["fields"]
    if not isinstance(names, list):
        refuse(f"{at}.fields", "must be a list of names of fields")
    types = {field.name: field.type for field in schema.fields}
    return Selection(frozenset(field_at(name, f"{at}.fields.{number}", types) for number, name in enumerate(names)))
