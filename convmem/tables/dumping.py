"""Writing the Markdown file beside a row, once the row is on the disk.

Whatever goes wrong is a warning in the answer of the change: the row is safe by then. The file is written from the row
as it was decided, so of two changes at once the later file may be the older row; the next change puts that right.
"""

import asyncio

from convmem import folders
from convmem.tables import dump
from convmem.tables.dump import DumpRefused
from convmem.tables.model import Row
from convmem.tables.places import Places
from convmem.tables.scanning import Mount


async def written(mount: Mount, places: Places, row: Row) -> list[str]:
    """Write the file of a row, if its table has any; warnings in sentences."""
    if mount.schema.dump is None:
        return []
    warned = dump.warnings(mount.schema.dump)
    try:
        await asyncio.to_thread(_write, mount, places, row)
    except DumpRefused as refused:
        return [*warned, f"the row is stored, its Markdown file was not written: {refused}"]
    except OSError as error:
        return [*warned, f"the row is stored, its Markdown file was not written: {error.strerror}"]
    return warned


def _write(mount: Mount, places: Places, row: Row) -> None:
    assert mount.schema.dump is not None
    target = dump.target(
        mount.schema.dump,
        row.id,
        table=mount.table,
        scope_root=mount.root.path,
        working_directory=places.working_directory,
    )
    folders.make(target.parent)
    folders.write(target, dump.text(mount.schema.dump, row.data).encode())
