"""Aliases that mini-app-mcp left: read where they are, and kept once among ours.

It keeps those of one table in that table's file (`_aliases`) and those over several in `_global.db`
(`_global_aliases`). Its filters have our shape; a filter that holds `{{` or `{%` is a template. What cannot be read is
named in the journal and left behind: the file still has it. Nothing of it is changed or removed, and nothing is taken
over twice, so what was deleted here does not come back.
"""

import logging
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import apsw

from convmem import folders, strict_json
from convmem.domain import Access
from convmem.errors import Busy, CallerError, StorageFull
from convmem.tables import alias_tables
from convmem.tables.alias_tables import TakeOver
from convmem.tables.aliases import Alias
from convmem.tables.places import GLOBAL_FILE, Root
from convmem.tables.scanning import Mount

JOURNAL = logging.getLogger("convmem")
OF_TABLE = ("_aliases", ("name", "filter", "default_limit", "description", "params_schema"))
GLOBAL = ("_global_aliases", (*OF_TABLE[1], "sources_json", "aggregator_json"))
Left = tuple[str, tuple[str, ...]]


async def take_over(access: Access, root: Root, mounts: Sequence[Mount]) -> None:
    """Keep what is new, of one root. A file that cannot be read is looked at again another time."""
    is_there = folders.size(root.aliases) > 0
    known: set[str] = set()
    try:
        if is_there:
            known = await access.read_files([root.aliases], alias_tables.sources_taken_over)
    except (CallerError, Busy, StorageFull):
        return
    for mount in mounts:
        if mount.root.path == root.path and mount.table not in known:
            await _take_over(access, root, mount.file.path, OF_TABLE, mount.table, mount.table)
    if is_there and GLOBAL_FILE not in known:
        await _take_over(access, root, root.aliases, GLOBAL, GLOBAL_FILE, "")


async def _take_over(access: Access, root: Root, file: Path, left: Left, source: str, table: str) -> None:
    with suppress(CallerError, Busy, StorageFull):
        found = await access.read_files([file], read, left, table)
        for name in found.left_behind:
            JOURNAL.warning("an alias in %s was not taken over, it cannot be read: %s", source, name)
        if found.aliases:
            await access.write(TakeOver(alias_tables.alias_file(root.aliases), source, found.aliases))


class Read(NamedTuple):
    """The aliases of another program, and the names of those that are none of ours to understand."""

    aliases: tuple[Alias, ...] = ()
    left_behind: tuple[str, ...] = ()


def read(connection: apsw.Connection, left: Left, table: str) -> Read:
    """The aliases in a table of another program; none if there is no such table. What is no alias hides no other."""
    name, columns = left
    # Texts as bytes: not every text is UTF-8.
    shown = (f"CASE typeof({column}) WHEN 'text' THEN CAST({column} AS BLOB) ELSE {column} END" for column in columns)
    sql = f"SELECT {', '.join(shown)} FROM {name}"
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
    if there.fetchone() is None:
        return Read()
    try:
        rows = connection.execute(sql).fetchall()
    except apsw.SQLError:
        return Read()  # A table of the same name with other columns.
    found = [(row[0], _alias(table, row)) for row in rows]
    return Read(
        tuple(alias for _, alias in found if alias is not None),
        tuple(alias_tables.shown(name) for name, alias in found if alias is None),
    )


def _alias(table: str, row: Sequence[Any]) -> Alias | None:
    try:
        values = [value.decode() if isinstance(value, bytes) else value for value in row]
    except UnicodeDecodeError:
        return None
    name, text, limit, description, params_schema, sources, aggregator = (*values, None, None)[: len(GLOBAL[1])]
    if not isinstance(name, str) or not name:
        return None
    is_template = isinstance(text, str) and ("{{" in text or "{%" in text)
    try:
        return Alias(
            name=name,
            table=table,
            filter=None if is_template else _json(text),
            filter_template=text if is_template else None,
            params_schema=_json(params_schema) if is_template else None,
            default_limit=limit if isinstance(limit, int) and limit > 0 else None,
            description=description if isinstance(description, str) else None,
            sources=_json(sources),
            aggregator=_json(aggregator),
        )
    except strict_json.MalformedJSON:
        return None


def _json(text: Any) -> Any:
    return strict_json.parse(text.encode()) if isinstance(text, str) and text.strip() else None
