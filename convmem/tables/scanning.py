"""Looking through the roots: which directories are tables, which of them can be used, and why not the others.

A directory is a table if its name does not begin with `_` or `.` and it holds a schema.yaml, or its file holds one that
was committed with the rows and never put in its place: a change of a schema that was cut off is finished here. Nothing
is followed that leads out of a root: a link in the place of a directory, a schema or a file makes the table broken.
"""

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from convmem import folders
from convmem.domain import Access
from convmem.errors import Busy, CallerError, StorageFault, StorageFull
from convmem.limits import BUSY_RETRY_MS, SCHEMA_BYTES_MAX
from convmem.tables import create, schema, standing
from convmem.tables.history import Keeping
from convmem.tables.model import TableSchema
from convmem.tables.names import folded, table_name_fault
from convmem.tables.places import GLOBAL_FILE, Places, Root, Scope, Single
from convmem.tables.standing import Standing
from convmem.tables.unusable import Broken, Unusable
from convmem.targets import TableDecider, TableFile, TableStamp


@dataclass(eq=False)
class Mount:
    """One table as it is mounted. Retired as soon as its schema is no longer the one that counts."""

    table: str
    scope: Scope
    root: Root  # In single-table mode the directory of the table's file.
    schema: TableSchema
    schema_file: Path
    file: TableFile
    keeping: Keeping
    is_default: bool = False
    redacts: bool = False
    # Where its file stood when it was mounted.
    standing: Standing = standing.UNKNOWN
    is_retired: bool = False
    _retired_by: object = None

    def refuse_if_retired(self, by: object = None) -> None:
        """Busy if the schema is no longer the one that counts, unless this command made it so: come again with the new
        mount.
        """
        if self.is_retired and (by is None or self._retired_by is not by):
            raise Busy("the table's schema is being changed", retry_after_ms=BUSY_RETRY_MS)

    def fallen(self) -> Broken | None:
        """Why the table cannot be used although it was mounted, None while it stands where it stood. Asks the disk."""
        reason = self.standing.fault(self.file.path)
        if reason is None:
            return None
        return Broken(self.table, self.scope, reason, is_default=self.is_default, code=StorageFault.code)

    def retire(self, by: object) -> None:
        """Let no other command be decided by this schema but this one, which may be decided twice."""
        self.refuse_if_retired(by)
        self.is_retired, self._retired_by = True, by


class Found(NamedTuple):
    """What a look through all roots has found."""

    mounts: Mapping[str, Mount]
    broken: list[Broken]


@dataclass(frozen=True)
class Prepare:
    """Have a table's file made, or caught up."""

    target: TableFile
    size_bytes: int = 1024


@dataclass(frozen=True)
class Settle:
    """Forget the schema that was pending: it is in its place."""

    target: TableFile
    size_bytes: int = 1024


def prepare(connection: apsw.Connection, command: Prepare, stamp: TableStamp) -> None:
    """Nothing more is to be done: opening the file has done it."""


def settle(connection: apsw.Connection, command: Settle, stamp: TableStamp) -> None:
    """Clear what was pending."""
    connection.execute("DELETE FROM _schema_pending")


TABLE_DECIDERS: Mapping[type[Any], TableDecider] = {Prepare: prepare, Settle: settle}


class NoTable(Exception):
    """A directory that is none of ours to mount."""


def table_file(path: Path) -> TableFile:
    """The store that a table's file is."""
    return TableFile(path, create.prepare)


async def scan(access: Access, places: Places, roots: Iterable[Root]) -> Found:
    """Look at everything; of two tables of one name the one of the first root counts."""
    mounts: dict[str, Mount] = {}
    broken: list[Broken] = []
    taken: set[str] = set()
    for root in roots:
        here: set[str] = set()
        for name in await asyncio.to_thread(candidates, root):
            if folded(name) in here:
                broken.append(Broken(name, root.scope, "its name differs from that of another table by case alone"))
                continue
            try:
                mount = await mounted(access, places, root, name)
            except NoTable:
                continue
            except Unusable as fault:
                broken.append(fault.broken(name, root.scope))
                here.add(folded(name))
                continue
            here.add(folded(name))
            if folded(name) not in taken:
                mounts[name] = mount
        # A broken table of a project hides that of the user all the same: it is the one that is meant.
        taken |= here
    if places.single is not None:
        try:
            mount = await _single(access, places, places.single)
        except NoTable:
            broken.append(Unusable("there is no schema").broken(None, "user", is_default=True))
        except Unusable as fault:
            broken.append(fault.broken(None, "user", is_default=True))
        else:
            mounts = {name: other for name, other in mounts.items() if folded(name) != folded(mount.table)}
            mounts[mount.table] = mount
    return Found(mounts, broken)


async def one(access: Access, places: Places, roots: Iterable[Root], name: str) -> tuple[Mount | None, list[Broken]]:
    """The table of one name: the one of the first root that has it."""
    for root in roots:
        try:
            return await mounted(access, places, root, name), []
        except NoTable:
            continue
        except Unusable as fault:
            return None, [fault.broken(name, root.scope)]
    return None, []


def candidates(root: Root) -> list[str]:
    """The names of all directories that may be tables, links to directories too. Waits for the disk."""
    return [name for name in folders.names(root.path) if name[0] not in "_." and root.directory(name).is_dir()]


async def mounted(access: Access, places: Places, root: Root, name: str) -> Mount:
    """One table of a root. Unusable, NoTable."""
    if fault := table_name_fault(name):
        raise Unusable(f"its name {fault}")
    if not folders.is_anything(root.directory(name)):
        raise NoTable
    if not folders.is_directory(root.directory(name)):
        raise Unusable("it is a link; a table must stand in the directory itself")
    file = table_file(root.rows(name))
    parsed = await _opened(access, root.schema(name), file)
    if parsed.table != name:
        raise Unusable(f"its schema says table: {parsed.table}, but the directory's name is the table's")
    return _standing(
        Mount(name, root.scope, root, parsed, root.schema(name), file, places.keeping, redacts=places.redacts)
    )


async def _single(access: Access, places: Places, single: Single) -> Mount:
    database = folders.real(single.database)
    if not database.parent.is_dir():
        raise Unusable("the directory of its file is not there")
    if database.name == GLOBAL_FILE:
        raise Unusable(f"{GLOBAL_FILE} is no table's file")
    file = table_file(database)
    schema_file = folders.real(single.schema)
    parsed = await _opened(access, schema_file, file)
    root = Root("user", database.parent)
    default = Mount(parsed.table, "user", root, parsed, schema_file, file, places.keeping, redacts=places.redacts)
    default.is_default = True
    return _standing(default)


def _standing(mount: Mount) -> Mount:
    """The mount with where its file stands. Unusable if it was replaced while it was looked at."""
    mount.standing = standing.of(mount.file.path)
    if fault := mount.standing.fault(mount.file.path):
        raise Unusable(fault)
    return mount


async def _opened(access: Access, schema_file: Path, file: TableFile) -> TableSchema:
    """The schema of a table whose file can be written, after what was pending is in its place."""
    if folders.is_anything(file.path) and not folders.is_file(file.path):
        raise Unusable("its file is a link, or no file")
    try:
        # Where it is locked for a moment, or the disk is full, its commands will be told so.
        looked: Look | None = None
        unfinished: TableSchema | None = None
        with suppress(Busy, StorageFull):
            looked = await access.read_files([file.path], look) if folders.size(file.path) else Look()
            unfinished = await _finish(access, schema_file, file, looked.pending)
        parsed = unfinished if unfinished is not None else await asyncio.to_thread(read_schema, schema_file)
        if looked is not None and not looked.is_prepared:
            with suppress(Busy, StorageFull):
                await access.release_file(file.path)  # Where it is open, another program took something away since.
                await access.write(Prepare(file))
    except CallerError as error:
        raise Unusable(error.message, error) from None
    except OSError as error:
        raise Unusable(f"it cannot be read: {error.strerror}") from None
    return parsed


def read_schema(path: Path) -> TableSchema:
    """The schema that a file says now. Waits for the disk. NoTable, Unusable, SchemaError, OSError."""
    if not folders.is_anything(path):
        raise NoTable
    if not folders.is_file(path):
        raise Unusable("its schema is a link, or no file")
    return schema.parse(folders.read(path, SCHEMA_BYTES_MAX + 1))


async def _finish(access: Access, schema_file: Path, file: TableFile, pending: "Pending | None") -> TableSchema | None:
    """Put a schema in its place that is committed and is not there yet; return it if the disk does not let that be."""
    if pending is None:
        return None
    try:
        await asyncio.to_thread(put_in_place, schema_file, pending.yaml)
    except OSError:
        if pending.yaml is None:
            raise
        return schema.parse(pending.yaml)
    await access.write(Settle(file))
    return None


class Pending(NamedTuple):
    """A schema that is committed but may not be in its place; None: the schema is to be taken away."""

    yaml: bytes | None


class Look(NamedTuple):
    """What a table's file says of itself: the schema that is pending, and whether it holds all that it needs."""

    pending: Pending | None = None
    is_prepared: bool = False


def look(connection: apsw.Connection) -> Look:
    """Look into a table's file, which may hold anything. StorageFault if it is none of ours any more."""
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema")}
    create.refuse_without_rows(connection)
    columns = {row[1] for row in connection.execute("PRAGMA table_info(_row_history)")}
    row = connection.execute("SELECT yaml FROM _schema_pending").fetchone() if "_schema_pending" in there else None
    pending = None if row is None else Pending(row[0])
    if pending is not None and not isinstance(pending.yaml, bytes | None):
        raise StorageFault("the schema that is pending in the table's file is none")
    return Look(pending, there >= create.NAMES and "origin" in columns)


def put_pending(connection: apsw.Connection, yaml: bytes | None) -> None:
    """Commit, with the transaction that is open, that this is the schema from now on; None: that there is none."""
    connection.execute("INSERT OR REPLACE INTO _schema_pending VALUES (1, ?)", (yaml,))


def put_in_place(schema_file: Path, yaml: bytes | None) -> None:
    """Let the schema's file say what was committed, or be gone. OSError."""
    if yaml is None:
        folders.remove(schema_file)
    else:
        folders.write(schema_file, yaml)
