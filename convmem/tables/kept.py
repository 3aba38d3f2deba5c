"""Which files of tables a backup takes along, each with a name that says where it belongs and not where it was.

    _global.db   NAME/schema.yaml   NAME/NAME.db      what stands in the user's root, broken tables too
    _single/schema.yaml   _single/_single.db          the one table of single-table mode, wherever its files are

The idea: such a name stays the same whatever becomes of a table, so that a backup keeps the last good copy of a file
that cannot be read today. No directory of a table begins with `_`, so `_single` is nobody's name. Where the one table
stands in the root anyhow, it is there once.

Rejected: the one table under its own name. A file in the root may have that name, and one whose schema is broken has
none.
"""

from collections.abc import Collection
from pathlib import Path

from convmem import folders
from convmem.tables import scanning
from convmem.tables.places import GLOBAL_FILE, SCHEMA_FILE, Root, Single

SINGLE = "_single"


def files(root: Root, single: Single | None, wanted: Collection[str] = ()) -> list[tuple[str, Path]]:
    """Each file by its name, and where it is. Those of the tables that are `wanted`, and of the one table, also if they
    are not there, and whatever stands in the place of a file: who copies it finds out. Waits for the disk; may be
    called on any thread.
    """
    found = [(GLOBAL_FILE, root.aliases)]
    for name in sorted({*scanning.candidates(root), *wanted}):
        found += [(f"{name}/{path.name}", path) for path in (root.schema(name), root.rows(name))]
    found = [(name, path) for name, path in found if name.split("/")[0] in wanted or folders.is_anything(path)]
    return found if single is None else found + _of_the_one(single, {folders.real(path) for _, path in found})


def _of_the_one(single: Single, there: Collection[Path]) -> list[tuple[str, Path]]:
    places = ((SCHEMA_FILE, single.schema), (f"{SINGLE}.db", single.database))
    found = [(f"{SINGLE}/{name}", folders.real(path)) for name, path in places]
    # Either file alone would be half a table.
    return [] if all(path in there for _, path in found) else found
