"""Changing which tables there are and what their rows hold, one change at a time.

    backup -> the schema's text is committed in the table's file -> put in its place -> cleared -> mounted anew

The idea: what counts is the commit. From there on the change happens even if the process dies: whoever mounts the table
next puts the committed text in its place. A command that was left before it with the old schema is refused by the
transaction itself (mounts.py), and comes again.

Rejected: writing the YAML first. Rows would be checked against a schema that may never have been committed.
"""

import asyncio
from typing import Any

import apsw

from convmem import folders
from convmem.domain import Access
from convmem.errors import CallerError, Conflict, Invalid, SchemaError, SchemaExists, TableNotFound
from convmem.limits import INT64_MIN, ROWS_CHECKED_AT_ONCE
from convmem.tables import backing_up, making, queries, scanning, schema
from convmem.tables import data as row_data
from convmem.tables.commands import DeclareSchema
from convmem.tables.disk import refused_by_disk
from convmem.tables.model import TableSchema
from convmem.tables.mounts import Mounts
from convmem.tables.names import folded, table_name_fault
from convmem.tables.places import Root, Scope
from convmem.tables.scanning import Mount
from convmem.tables.schema_inputs import SchemaCreate, SchemaDelete, SchemaUpdate
from convmem.tables.unusable import Unusable
from convmem.targets import TableFile


async def created(access: Access, mounts: Mounts, ask: SchemaCreate) -> dict[str, Any]:
    """Make a table: {created, scope, rows?, rows_failing?, dry_run?}; by whoever holds `changing`."""
    root = root_of(mounts, ask.scope or "user")
    new = schema.declared(ask.declared())
    with refused_by_disk(new.table):
        await asyncio.to_thread(refuse_taken, root, new.table)
    file = scanning.table_file(root.rows(new.table))
    facts: dict[str, Any] = {"created": new.table, "scope": root.scope}
    rows, failing = await counted(access, file, new)
    if rows:
        if not ask.adopt:
            raise exists(new.table, f"there are {rows} rows of an earlier table of this name; adopt takes them over")
        facts |= {"rows": rows, "rows_failing": failing}
    if ask.dry_run:
        return {**facts, "dry_run": True}
    async with making.place(access, mounts, root, new.table):
        await access.write(DeclareSchema(file, schema.render(new), None, adopts=ask.adopt))
    return facts


async def updated(access: Access, mounts: Mounts, ask: SchemaUpdate) -> dict[str, Any]:
    """Change a schema: {fields_added, fields_removed, fields_type_changed, rows_failing, dry_run?}; likewise."""
    mount = await mount_of(access, mounts, ask.table, ask.scope)
    new = schema.updated(mount.schema, ask.declared())
    _, failing = await counted(access, mount.file, new)
    facts = {**schema.changed(mount.schema, new), "rows_failing": failing}
    if ask.dry_run:
        return {**facts, "dry_run": True}
    await declared(access, mounts, mount, schema.render(new))
    return facts


async def deleted(access: Access, mounts: Mounts, ask: SchemaDelete) -> dict[str, Any]:
    """Take a table away: {deleted, scope, rows, backup?, dry_run?}; its rows stay in their file. Likewise."""
    mount = await mount_of(access, mounts, ask.table, ask.scope)
    rows = await access.read_files([mount.file.path], queries.count_rows)
    facts = {"deleted": mount.table, "scope": mount.scope, "rows": rows}
    if ask.dry_run:
        return {**facts, "dry_run": True}
    backup = await declared(access, mounts, mount, None)
    await access.release_file(mount.file.path)
    return {**facts, "backup": backup}


async def declared(access: Access, mounts: Mounts, mount: Mount, yaml: bytes | None) -> list[str]:
    """Back a table up and give it another schema, or none; the names of the backup's files."""
    await refuse_if_edited(mount)
    backup = await backing_up.back_up(access, mounts.places, mount)
    try:
        await access.write(DeclareSchema(mount.file, yaml, mount))
    finally:
        await mounts.refresh(access, mount.table)
    return backup


async def refuse_if_edited(mount: Mount) -> None:
    """Conflict if the schema's file says something else than what is mounted: somebody's edit would be lost."""
    try:
        is_as_mounted = await asyncio.to_thread(scanning.read_schema, mount.schema_file) == mount.schema
    except (OSError, SchemaError, scanning.NoTable, Unusable):
        is_as_mounted = False
    if not is_as_mounted:
        raise Conflict("the file of the schema was changed meanwhile; look at it, then call reload", field="table")


def root_of(mounts: Mounts, scope: Scope) -> Root:
    """The root of a scope. Invalid if there is none that can be used."""
    root = mounts.root(scope)
    if root is None:
        raise Invalid(f"there is no directory for tables of scope {scope} that can be used", field="scope")
    return root


async def mount_of(access: Access, mounts: Mounts, table: str, scope: Scope | None) -> Mount:
    """The table of a name: the one that is mounted, or the one of a scope, also if another hides it. TableNotFound."""
    mount = mounts.table(table) if scope is None or table in mounts.names() else None
    if mount is not None and scope in (None, mount.scope):
        return mount
    if table_name_fault(table) is None:
        hidden, _ = await scanning.one(access, mounts.places, [root_of(mounts, scope or "user")], table)
        if hidden is not None:
            return hidden
    raise TableNotFound(f"there is no table of this name in scope {scope}", table=table)


def exists(table: str, sentence: str = "there is a table of this name already") -> SchemaExists:
    """What whoever makes a table is told if there is one."""
    return SchemaExists(sentence, table=table)


def refuse_taken(root: Root, table: str) -> None:
    """SchemaExists if a root holds a table of this name, or one that cannot be told from it where case does not count.

    Waits for the disk. Invalid if something else stands in its place.
    """
    for name in folders.names(root.path):
        if folded(name) == folded(table) and name != table:
            if folders.is_anything(root.schema(name)):
                raise exists(name, "there is a table whose name differs by case alone")
            raise Invalid("there is a directory whose name differs by case alone", field="table")
    directory = root.directory(table)
    if folders.is_anything(root.schema(table)):
        raise exists(table)
    stands_there = folders.is_anything(directory) and not folders.is_directory(directory)
    if stands_there or (folders.is_anything(root.rows(table)) and not folders.is_file(root.rows(table))):
        raise Invalid("something else stands where the table would", field="table")


async def counted(access: Access, file: TableFile, new: TableSchema) -> tuple[int, int]:
    """How many rows a file holds, and how many of them a schema does not admit. No more rows are looked at than are
    there at the beginning of each step, so other questions and the writer wait for none of it.
    """
    if not folders.size(file.path):
        return 0, 0
    rows = failing = 0
    after: int | None = INT64_MIN
    while after is not None:
        found = await access.read_files([file.path], checked_rows, new, after)
        rows, failing, after = rows + found[0], failing + found[1], found[2]
    return rows, failing


def checked_rows(connection: apsw.Connection, new: TableSchema, after: int) -> tuple[int, int, int | None]:
    """Of some rows behind a place: how many there are, how many a schema does not admit, and the last place if more may
    be there.
    """
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'rows'").fetchone()
    if there is None:
        return 0, 0, None
    # By rowid, and a text as bytes: another program may have written ids and texts that are no UTF-8.
    data = "CASE typeof(data) WHEN 'text' THEN CAST(data AS BLOB) END"
    sql = f"SELECT rowid, {data} FROM rows WHERE rowid > ? ORDER BY rowid LIMIT ?"
    rows: list[Any] = connection.execute(sql, (after, ROWS_CHECKED_AT_ONCE)).fetchall()
    failing = sum(not admits(new, data) for _, data in rows)
    return len(rows), failing, rows[-1][0] if len(rows) == ROWS_CHECKED_AT_ONCE else None


def admits(new: TableSchema, data: bytes | None) -> bool:
    """True if a row's data, as the file holds it, is one by this schema."""
    try:
        row_data.checked(new, queries.read_data(None if data is None else data.decode()))
    except (CallerError, UnicodeDecodeError):
        return False
    return True
