"""What a caller may ask of tables as such: to make one, to change what its rows hold, to take it away, to copy it."""

from typing import Annotated, Any, Literal

import msgspec
from pydantic import Field

from convmem.inputs import FromJSON, Input
from convmem.limits import BATCH_OPS_MAX, FIELDS_MAX
from convmem.tables import fields as kinds

Scope = Literal["user", "project"]
Fields = Annotated[list[dict[str, Any]], kinds.FROM_JSON_LIST, Field(max_length=FIELDS_MAX)]


class Declared(Input):
    """A table as its schema says it."""

    table: kinds.Table = Field(description="Its name: A-Z a-z 0-9 _ -.")
    scope: Scope | None = Field(default=None, description="Default user.")
    fields: Fields = Field(description="[{name, type: string/number/boolean/array/object, required?, description?}]")
    title: str | None = Field(default=None, description="Its title.")
    description: str | None = Field(default=None, description="What it is for.")
    history: Literal["full", "off"] | None = Field(default=None, description="Keep versions of rows; default full.")
    dump: Annotated[dict[str, Any] | None, FromJSON, kinds.ANY_OBJECT] = Field(
        default=None, description="Markdown files of rows: {dir, title_field, body_field}."
    )
    dry_run: bool = Field(default=False, description="Only say what would be.")

    def declared(self) -> dict[str, Any]:
        """The same with the keys of a schema.yaml."""
        names = ("table", "title", "description", "fields", "dump", "history")
        return {name: value for name in names if (value := getattr(self, name)) is not None}


class SchemaCreate(Declared):
    """Make a table."""

    adopt: bool = Field(default=False, description="Take over rows that an earlier table left.")


class SchemaUpdate(Declared):
    """Change what a table's rows hold."""


class SchemaDelete(Input):
    """Take a table away."""

    table: kinds.Table = Field(description="Its name.")
    scope: Scope | None = Field(default=None, description="Where it is; default where it is found.")
    dry_run: bool = Field(default=False, description="Only say what would be.")


class SchemaBatch(Input):
    """Do several things to one table, all or none."""

    table: kinds.Table | None = Field(default=None, description="Default: what ops name.")
    scope: Scope | None = Field(default=None, description="Of a table that ops create; default user.")
    ops: Annotated[list[dict[str, Any]], kinds.FROM_JSON_LIST, Field(min_length=1, max_length=BATCH_OPS_MAX)] = Field(
        description='[{"op": data_insert/data_update/data_delete/replace/schema_…/query, …}]'
    )
    dry_run: bool = Field(default=False, description="Only say what would be.")

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + 4 * len(msgspec.json.encode(self.ops))


class DataSnapshot(Input):
    """Copy tables."""

    table: kinds.Table | None = Field(default=None, description="One table; default all.")
    scope: Scope | None = Field(default=None, description="Only this scope.")
    dry_run: bool = Field(default=False, description="Only say what would be.")
    upload: bool = Field(default=False, description="Also to the S3 host of the settings.")
