"""The nouns of tables: the schema that a table has, its fields, how its rows are dumped, and a row.

Each is valid because it exists: schema.py and data.py have checked it. `unknown` holds what a schema.yaml says and we
do not know, so that a file that another program shares is written back whole.
"""

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec

FieldType = Literal["string", "number", "boolean", "array", "object"]
History = Literal["full", "off"]
Sync = Literal["write-only", "bidirectional"]
FIELD_TYPES: tuple[FieldType, ...] = get_args(FieldType)
SYNCS: tuple[Sync, ...] = get_args(Sync)


class Field(msgspec.Struct, frozen=True, kw_only=True):
    """One field of a table. A required one stands in every row and is not null."""

    name: str
    type: FieldType
    required: bool = False
    description: str | None = None
    unknown: Mapping[str, Any] = {}

    def facts(self) -> dict[str, Any]:
        """The same for programs: what is absent is left out, `required` always stands there."""
        facts: dict[str, Any] = {"name": self.name, "type": self.type, "required": self.required}
        if self.description is not None:
            facts["description"] = self.description
        return {**facts, **self.unknown}


class Dump(msgspec.Struct, frozen=True, kw_only=True):
    """Rows also become Markdown files: where, and from which fields. What is None is as dump.py says."""

    dir: str | None = None
    title_field: str | None = None
    body_field: str | None = None
    sync: Sync | None = None
    unknown: Mapping[str, Any] = {}

    def facts(self) -> dict[str, Any]:
        """The same for programs: what is absent is left out."""
        known = {name: getattr(self, name) for name in self.__struct_fields__ if name != "unknown"}
        return {**{name: value for name, value in known.items() if value is not None}, **self.unknown}


class TableSchema(msgspec.Struct, frozen=True, kw_only=True):
    """What a schema.yaml says. No two fields have one name."""

    table: str
    fields: tuple[Field, ...]
    title: str | None = None
    description: str | None = None
    dump: Dump | None = None
    history: History = "full"
    unknown: Mapping[str, Any] = {}

    def field(self, name: str) -> Field | None:
        """The field of exactly this name."""
        return next((field for field in self.fields if field.name == name), None)

    def facts(self) -> dict[str, Any]:
        """The same for programs, in the order and with the keys of a schema.yaml."""
        facts: dict[str, Any] = {"table": self.table, "title": self.title, "description": self.description}
        facts = {name: value for name, value in facts.items() if value is not None}
        facts["fields"] = [field.facts() for field in self.fields]
        if self.dump is not None:
            facts["dump"] = self.dump.facts()
        return {**facts, "history": self.history, **self.unknown}


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One row. `id` is a UUID (version 4, lower case), times are Unix seconds, `data` is as data.checked returns it."""

    id: str
    data: Mapping[str, Any]
    created_at: int
    updated_at: int

    def facts(self) -> dict[str, Any]:
        """The whole row for programs."""
        return {"id": self.id, "data": self.data, "created_at": self.created_at, "updated_at": self.updated_at}
