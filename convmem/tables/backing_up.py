"""The backup before a change of a schema: the schema's file and a copy of the rows, both of one moment's name."""

import asyncio
import errno
import os
from pathlib import Path

from convmem import folders
from convmem.domain import Access
from convmem.tables import copies
from convmem.tables.disk import refused_by_disk
from convmem.tables.places import Places
from convmem.tables.scanning import Mount


async def back_up(access: Access, places: Places, mount: Mount) -> list[str]:
    """Back a table up and purge what is too much; the names of the new files. Whoever calls it holds `changing`."""
    directory = mount.root.backups
    with refused_by_disk(directory.name):
        at_ms = await asyncio.to_thread(_begin, mount, access.now_ms())
    rows = copies.name(mount.table, at_ms, "db")
    await access.copy_file(mount.file.path, directory / rows)
    schema = copies.name(mount.table, at_ms, "yaml")
    with refused_by_disk(schema):
        await asyncio.to_thread(folders.copy, mount.schema_file, directory / schema)
        await asyncio.to_thread(purge, mount, places.backups_kept)
    return [schema, rows]


def _begin(mount: Mount, now_ms: int) -> int:
    """Make the directory of backups, and find a moment whose name is free. Waits for the disk."""
    directory = mount.root.backups
    refuse_links(directory)
    folders.make(directory)
    return copies.free_at(folders.names(directory), mount.table, now_ms)


def purge(mount: Mount, keep: int) -> None:
    """Remove what is too much of a table's backups."""
    directory = mount.root.backups
    for name in copies.surplus(folders.names(directory), mount.table, keep):
        folders.remove(directory / name)


def refuse_links(directory: Path) -> None:
    """OSError if something else than a directory stands in the place of one."""
    if folders.is_anything(directory) and not folders.is_directory(directory):
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
