"""What a caller may ask of aliases and of many rows at once."""

from typing import Annotated, Any

from pydantic import Field, model_validator

from convmem.inputs import FromJSON, Input
from convmem.limits import REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX, TEMPLATE_BYTES_MAX
from convmem.tables import fields as kinds
from convmem.tables.schema_inputs import Scope

ParamsSchema = Annotated[list[Any] | dict[str, Any], FromJSON, kinds.ANY_OBJECT]
AliasName = Annotated[str, Field(min_length=1, max_length=128)]


class AliasCreate(Input):
    """Give a question a name."""

    name: AliasName = Field(description="Its name.")
    table: kinds.Table | None = Field(default=None, description="Its table; or sources.")
    sources: kinds.Object | None = Field(
        default=None, description='{"kind": single/multi/pattern, "value": name, names or glob}.'
    )
    filter: kinds.Object | None = Field(default=None, description="As of list.")
    filter_template: Annotated[str, Field(max_length=TEMPLATE_BYTES_MAX)] | None = Field(
        default=None, description="JSON of a filter with {{ parameters }}."
    )
    params_schema: ParamsSchema | None = Field(default=None, description="JSON Schema of the parameters.")
    aggregator: kinds.Object | None = Field(default=None, description="With sources: as of query_aggregate.")
    default_limit: kinds.Limit | None = Field(default=None, description="Rows it gives.")
    description: Annotated[str, Field(max_length=4096)] | None = Field(default=None, description="What it is for.")
    order_by: kinds.Objects | None = Field(default=None, description="As of list.")
    fields: kinds.Object | None = Field(default=None, description="As of list.")
    scope: Scope | None = Field(default=None, description="Default that of the table.")

    @model_validator(mode="before")
    @classmethod
    def _other_spelling(cls, given: Any) -> Any:
        """`limit` is default_limit; both at once are refused as two."""
        if not isinstance(given, dict) or "limit" not in given or "default_limit" in given:
            return given
        renamed = {name: value for name, value in given.items() if name != "limit"}
        return renamed if given["limit"] is None else {**renamed, "default_limit": given["limit"]}


class AliasList(Input):
    """List aliases."""

    table: kinds.Table | None = Field(default=None, description="Only of this table and of several.")
    scope: Scope | None = Field(default=None, description="Only of this scope.")


class AliasRun(Input):
    """Ask a question by its name."""

    name: AliasName = Field(description="Its name.")
    table: kinds.Table | None = Field(default=None, description="Its table, if several have the name.")
    params: kinds.Object | None = Field(default=None, description="Values for its template.")
    limit: kinds.Limit | None = Field(default=None, description="Rows.")
    offset: kinds.Offset = Field(default=0, description="Rows to skip.")
    cursor: kinds.Cursor | None = Field(default=None, description="next_cursor of the page before.")
    fields: kinds.Object | None = Field(default=None, description="As of list.")
    order_by: kinds.Objects | None = Field(default=None, description="As of list.")

    @property
    def reply_bytes_max(self) -> int:
        """How large the reply may be: who asks for a size gets it."""
        return REPLY_BYTES_MAX if self.limit is not None else REPLY_BYTES_DEFAULT


class AliasDelete(Input):
    """Take an alias away."""

    name: AliasName = Field(description="Its name.")
    table: kinds.Table | None = Field(default=None, description="Its table, if several have the name.")
    scope: Scope | None = Field(default=None, description="Its scope, if both have it.")


class QueryAggregate(Input):
    """Ask something of many rows at once."""

    sources: kinds.Object = Field(description='{"kind": single/multi/pattern, "value": name, names or glob}.')
    filter: kinds.Object | None = Field(default=None, description="As of list.")
    aggregator: kinds.Object = Field(
        description='{"kind":"count"}, {"kind":"sum/avg/min/max","field":…}, {"kind":"group_by","by_field":…}.'
    )
