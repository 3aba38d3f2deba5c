"""Aliases that mini-app-mcp left: read where they are, and kept once among ours.

It keeps those of one table in that table's file (`_aliases`) and those over several in `_global.db`
(`_global_aliases`). Its filters have our shape; a filter that holds `{{` or `{%` is a template. What cannot be read is
left behind: the file still has it. Nothing of it is changed or removed, and nothing is taken over twice, so what was
deleted here does not come back.
"""

from collections.abc import Sequence
from typing import Any

import apsw

from convmem import folders, strict_json
from convmem.domain import Access
from convmem.errors import Busy, CallerError
from convmem.tables import alias_tables
from convmem.tables.alias_tables import TakeOver
from convmem.tables.aliases import Alias
from convmem.tables.places import GLOBAL_FILE, Root
from convmem.tables.scanning import Mount

OF_TABLE = "SELECT name, filter, default_limit, description, params_schema, NULL, NULL FROM _aliases"
GLOBAL = (
    "SELECT name, filter, default_limit, description, params_schema, sources_json, aggregator_json FROM _global_aliases"
)


async def take_over(access: Access, root: Root, mounts: Sequence[Mount]) -> None:
    """Keep what is new, of one root. A file that cannot be read is looked at again another time."""
    target = alias_tables.alias_file(root.aliases)
    try:
        known: set[str] = set()
        if folders.size(root.aliases):
            known = await access.read_files([root.aliases], alias_tables.sources_taken_over)
        for mount in mounts:
            if mount.root.path == root.path and mount.table not in known:
                found = await access.read_files([mount.file.path], read, OF_TABLE, mount.table)
                if found:
                    await access.write(TakeOver(target, mount.table, tuple(found)))
        if folders.size(root.aliases) and GLOBAL_FILE not in known:
            found = await access.read_files([root.aliases], read, GLOBAL, "")
            if found:
                await access.write(TakeOver(target, GLOBAL_FILE, tuple(found)))
    except (CallerError, Busy):
        return


def read(connection: apsw.Connection, sql: str, table: str) -> list[Alias]:
    """The aliases that a query of another program's table finds; none if there is no such table."""
    name = sql.rsplit(" ", 1)[1]
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?", (name,))
    if there.fetchone() is None:
        return []
    try:
        rows = connection.execute(sql).fetchall()
    except apsw.SQLError:
        return []  # A table of the same name with other columns.
    found = (_alias(table, row) for row in rows)
    return [alias for alias in found if alias is not None]


def _alias(table: str, row: Sequence[Any]) -> Alias | None:
    name, text, limit, description, params_schema, sources, aggregator = row
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
