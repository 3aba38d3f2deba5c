"""The place of a table that is being made, which is left as it was found if no table comes of it.

A table's file must be there before anything can be committed in it, also where that is only tried. So whoever makes one
does it in here: what was not there before, and holds nothing that counts, is taken away again. A file that an earlier
table left is nobody's to take away.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from convmem import folders
from convmem.domain import Access
from convmem.errors import Stopping, StoreFailed
from convmem.tables.disk import refused_by_disk
from convmem.tables.mounts import Mounts
from convmem.tables.places import Root

BESIDE = ("", "-wal", "-shm", "-journal")


@asynccontextmanager
async def place(access: Access, mounts: Mounts, root: Root, table: str, *, is_dry: bool = False) -> AsyncIterator[None]:
    """The directory of a table inside the block, which commits its schema (not so if it is dry); mounted behind it.

    By whoever holds `changing`. StorageFull, DiskFault.
    """
    directory, rows = root.directory(table), root.rows(table)
    had_directory, had_rows = folders.is_anything(directory), folders.is_anything(rows)
    is_made = False
    try:
        with refused_by_disk(table):
            await asyncio.to_thread(folders.make, directory)
        yield
        is_made = not is_dry
    finally:
        try:
            await mounts.refresh(access, table)
        finally:
            is_mounted = any((mount.root, mount.table) == (root, table) for mount in mounts.mounts())
            if not (is_made or is_mounted or folders.is_anything(root.schema(table))):
                # A store that ends has closed it.
                with suppress(Stopping, StoreFailed):
                    await access.release_file(rows)
                with refused_by_disk(table):
                    await asyncio.to_thread(_clear, root, table, had_rows, had_directory)


def _clear(root: Root, table: str, had_rows: bool, had_directory: bool) -> None:
    rows = root.rows(table)
    for name in () if had_rows else (f"{rows.name}{suffix}" for suffix in BESIDE):
        if folders.is_anything(rows.with_name(name)):
            folders.remove(rows.with_name(name))
    if not had_directory:
        folders.remove_empty(root.directory(table))
