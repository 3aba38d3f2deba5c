"""The tools of tables, as values: names and descriptions are what a model reads.

What changes a row is left with the writer together with the mount of its table. If a schema is changed meanwhile, the
tool comes again with the new mount: callers never see it.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from convmem.domain import Access, Answer
from convmem.errors import Busy, Invalid, StorageFault
from convmem.fingerprints import fingerprint
from convmem.tables import alias_tools, dumping, replies, schema_tools, views
from convmem.tables.alias_tables import alias_file
from convmem.tables.changes import Changed
from convmem.tables.commands import CreateRow, DeleteRow, InsertText, OnTable, ReplaceText, RestoreRow, UpdateRow
from convmem.tables.inputs import (
    ContentInsert,
    ContentReplace,
    ContentView,
    Create,
    Delete,
    Get,
    Info,
    List,
    OfTable,
    RowHistory,
    RowRestore,
    Update,
)
from convmem.tables.mounts import mounts_of
from convmem.tables.offering import reads, writes
from convmem.tables.scanning import Mount
from convmem.tables.used_keys import UseKey

Asked = TypeVar("Asked", bound=OfTable)


async def changed(access: Access, ask: OfTable, kind: Callable[[Mount, Any], OnTable]) -> tuple[Mount, Any]:
    """Leave a change with the writer; the mount it was made under, and what was decided."""
    while True:
        mount = await (await mounts_of(access)).mounted(ask.table)
        try:
            return mount, await access.write(kind(mount, ask))
        except Busy:
            if not mount.is_retired:
                raise


async def _receipt(access: Access, mount: Mount, change: Changed, **more: Any) -> Answer:
    facts = {**replies.changed(change.row, change.version), **more}
    if warnings := await dumping.written(mount, (await mounts_of(access)).places, change.row):
        facts["warning"] = "; ".join(warnings)
    return Answer(facts)


async def read(access: Access, ask: Asked, query: Callable[..., dict[str, Any]]) -> Answer:
    """Run `query(connection, mount, ask)` on the table's file."""
    mount = await (await mounts_of(access)).mounted(ask.table)
    return Answer(await access.read_files([mount.file.path], query, mount, ask))


async def info(access: Access, ask: Info) -> Answer:
    """The schema and how many rows."""
    mount = await (await mounts_of(access)).mounted(ask.table)
    return Answer(await access.read_files([mount.file.path], views.info, mount))


async def create(access: Access, ask: Create) -> Answer:
    """Leave the row with the writer."""
    if ask.idempotency_key is not None:
        await _use_key(access, ask, ask.idempotency_key)
    mount, done = await changed(access, ask, CreateRow)
    if "replayed" in done:
        known = {"sha256": done["sha256"], "replayed": True}
        return Answer({**replies.changed(done["changed"].row, done["changed"].version), **known})
    return await _receipt(access, mount, done["changed"])


async def _use_key(access: Access, ask: Create, key: str) -> None:
    """Conflict if the device has used the key for another table."""
    mounts = await mounts_of(access)
    mount, root = await mounts.mounted(ask.table), mounts.root("user")
    if root is None:
        return  # There is one table.
    # Where the file of aliases is damaged, rows are written all the same.
    with suppress(StorageFault):
        name = f"{mount.scope}/{mount.table}"
        await access.write(UseKey(alias_file(root.aliases), fingerprint(key.encode()), name))


async def get(access: Access, ask: Get) -> Answer:
    """One row."""
    return await read(access, ask, views.get)


async def list_rows(access: Access, ask: List) -> Answer:
    """A page of rows."""
    mount = await (await mounts_of(access)).mounted(ask.table)
    question, shown = views.question_of(mount, ask)
    return Answer(await access.read_files([mount.file.path], views.list_rows, question, shown, ask))


async def update(access: Access, ask: Update) -> Answer:
    """Leave the change with the writer."""
    return await _receipt(access, *await changed(access, ask, UpdateRow))


async def delete(access: Access, ask: Delete) -> Answer:
    """Leave the deletion with the writer."""
    _, facts = await changed(access, ask, DeleteRow)
    return Answer(facts)


async def content_view(access: Access, ask: ContentView) -> Answer:
    """Lines of a text."""
    return await read(access, ask, views.view_text)


async def content_replace(access: Access, ask: ContentReplace) -> Answer:
    """Leave the replacement with the writer."""
    mount, (change, matches) = await changed(access, ask, ReplaceText)
    return await _text_receipt(access, mount, change, {"matches": matches})


async def content_insert(access: Access, ask: ContentInsert) -> Answer:
    """Leave the lines with the writer."""
    mount, (change, done) = await changed(access, ask, InsertText)
    return await _text_receipt(access, mount, change, {"line": done.line, "inserted_lines": done.inserted_lines})


async def _text_receipt(access: Access, mount: Mount, change: Changed, facts: dict[str, Any]) -> Answer:
    """A receipt without the row: whoever edits by lines does not want the text back."""
    whole = (await _receipt(access, mount, change)).facts
    kept = {name: whole[name] for name in ("id", "updated_at", "version", "sha256", "warning") if name in whole}
    return Answer({**facts, **kept})


async def row_restore(access: Access, ask: RowRestore) -> Answer:
    """Leave the restore with the writer."""
    if (ask.at_unix_secs is None) == (ask.version is None):
        raise Invalid("give either at_unix_secs or version", field="version")
    mount, done = await changed(access, ask, RestoreRow)
    return await _receipt(access, mount, done["changed"], restored_from=done["restored_from"])


async def row_history(access: Access, ask: RowHistory) -> Answer:
    """The versions of a row."""
    return await read(access, ask, views.row_versions)


ROW_TOOLS = (
    reads("info", "Describe a table", "Schema, scope, history and number of rows of a table.", Info, info),
    writes("create", "Create a row", "Add a row to a table.", Create, create, destructive=False),
    reads("get", "Get a row", "Read one row.", Get, get),
    reads("list", "List rows", "Read rows by filter and order, page by page.", List, list_rows),
    writes("update", "Update a row", "Change fields of a row, or replace all of them.", Update, update),
    writes("delete", "Delete a row", "Take a row away; row_restore brings it back.", Delete, delete),
    reads("content_view", "View a text", "Show a text field with line numbers.", ContentView, content_view),
    writes(
        "content_replace",
        "Replace in a text",
        "Replace a passage of a text field that stands there once.",
        ContentReplace,
        content_replace,
    ),
    writes("content_insert", "Insert into a text", "Insert lines into a text field.", ContentInsert, content_insert),
    writes("row_restore", "Restore a row", "Write back what a row was, also a deleted one.", RowRestore, row_restore),
    reads("row_history", "History of a row", "List the versions of a row.", RowHistory, row_history),
)

TOOLS = (*ROW_TOOLS, *schema_tools.TOOLS, *alias_tools.TOOLS)
