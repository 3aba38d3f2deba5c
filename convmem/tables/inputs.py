"""What a caller may ask of the rows of a table: checked once, here, as far as no schema is needed for it.

`table` may be left out where one table is the default. The descriptions are short because a model reads them with every
turn.
"""

from typing import Literal

import msgspec
from pydantic import Field

from convmem.inputs import Input
from convmem.limits import HISTORY_PAGE_DEFAULT, REPLY_BYTES_DEFAULT, REPLY_BYTES_MAX, ROWS_LIMIT_DEFAULT
from convmem.tables import fields as kinds


class OfTable(Input):
    """Something of one table."""

    table: kinds.Table | None = Field(default=None, description="Its name.")


class Info(OfTable):
    """Read what a table is."""


class Create(OfTable):
    """Add a row."""

    data: kinds.Object = Field(description="Fields of the schema by name.")
    idempotency_key: kinds.IdempotencyKey | None = Field(
        default=None, description="Unique text: a repeated call adds nothing twice."
    )

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + 2 * len(msgspec.json.encode(self.data))


class Get(OfTable):
    """Read a row."""

    id: kinds.RowId = Field(description="Its id or the start of it.")
    fields: kinds.Object | None = Field(default=None, description='{"mode":"list","fields":[names]}; default all.')

    @property
    def reply_bytes_max(self) -> int:
        """How large the reply may be: who says which fields gets them whole."""
        return REPLY_BYTES_MAX if self.fields is not None else REPLY_BYTES_DEFAULT


class List(OfTable):
    """Read rows."""

    filter: kinds.Object | None = Field(
        default=None, description='{"type":"eq","field":…,"value":…}; and/or/not: see docs://filters.'
    )
    order_by: kinds.Objects | None = Field(default=None, description="[{field, direction: asc/desc}]; default newest.")
    fields: kinds.Object | None = Field(default=None, description='{"mode":"list","fields":[names]}; default all.')
    limit: kinds.Limit = Field(default=ROWS_LIMIT_DEFAULT, description="Rows a page.")
    offset: kinds.Offset = Field(default=0, description="Rows to skip.")
    cursor: kinds.Cursor | None = Field(default=None, description="next_cursor of the page before.")
    with_total: bool = Field(default=False, description="Count all.")

    @property
    def reply_bytes_max(self) -> int:
        """How large the reply may be: who asks for a size gets it."""
        return REPLY_BYTES_MAX if "limit" in self.model_fields_set else REPLY_BYTES_DEFAULT


class Update(OfTable):
    """Change a row."""

    id: kinds.RowId = Field(description="Its id or the start of it.")
    data: kinds.Object = Field(description="merge: fields to change, null removes; replace: all fields.")
    mode: Literal["merge", "replace"] = Field(default="merge", description="Default merge.")
    expected_sha256: kinds.Sha256 | None = Field(default=None, description="Guard: hash of the row as you know it.")

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + 4 * len(msgspec.json.encode(self.data))


class Delete(OfTable):
    """Take a row away."""

    id: kinds.RowId = Field(description="Its id or the start of it.")
    expected_sha256: kinds.Sha256 | None = Field(default=None, description="Guard: hash of the row as you know it.")


class ContentView(OfTable):
    """Read a text by lines."""

    id: kinds.RowId = Field(description="Its id or the start of it.")
    field: kinds.FieldName = Field(description="A string field.")
    view_range: kinds.LineRange | None = Field(default=None, description="[first, last] line from 1; -1: end.")


class ContentReplace(OfTable):
    """Replace a passage of a text."""

    id: kinds.RowId = Field(description="Its id or the start of it.")
    field: kinds.FieldName = Field(description="A string field.")
    old_str: kinds.Text = Field(description="Passage, exactly.")
    new_str: kinds.Text = Field(description="What stands there then.")
    view_range: kinds.LineRange | None = Field(default=None, description="Only in these lines.")
    replace_all: bool = Field(default=False, description="All passages.")
    expected_sha256: kinds.Sha256 | None = Field(default=None, description="Guard: hash of the row as you know it.")

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + 4 * (len(self.old_str.encode()) + len(self.new_str.encode()))


class ContentInsert(OfTable):
    """Insert lines into a text."""

    id: kinds.RowId = Field(description="Its id or the start of it.")
    field: kinds.FieldName = Field(description="A string field.")
    line: kinds.Line = Field(description="Before this line; 0: first; lines + 1: end.")
    content: kinds.Text = Field(description="Lines to insert.")
    expected_sha256: kinds.Sha256 | None = Field(default=None, description="Guard: hash of the row as you know it.")

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + 4 * len(self.content.encode())


class RowRestore(OfTable):
    """Bring back what a row was."""

    id: kinds.RowId = Field(description="Its id or the start of it, also of a deleted row.")
    at_unix_secs: kinds.Seconds | None = Field(default=None, description="As it was then; xor version.")
    version: kinds.Version | None = Field(default=None, description="Number of row_history.")


class RowHistory(OfTable):
    """List the versions of a row."""

    id: kinds.RowId = Field(description="Its id or the start of it, also of a deleted row.")
    limit: kinds.Limit = Field(default=HISTORY_PAGE_DEFAULT, description="How many, newest first.")
    cursor: kinds.Cursor | None = Field(default=None, description="next_cursor of the page before.")


class Reload(Input):
    """Look for tables anew."""
