"""Aliases on disk: one file for each scope, `_global.db`, and what deciders and readers do with it.

The parts of an alias that are JSON stand there as JSON. A line that another program has made unreadable hides no other:
it is named and left out, and whoever keeps an alias of its name replaces it. The tables of mini-app-mcp in the same
file (`_global_aliases`) are left as they are.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw
import msgspec

from convmem import strict_json
from convmem.errors import AliasExists
from convmem.tables import used_keys
from convmem.tables.aliases import Alias, not_found
from convmem.targets import TableDecider, TableFile, TableStamp

CREATE = """
CREATE TABLE IF NOT EXISTS aliases (
    table_name TEXT NOT NULL,
    name TEXT NOT NULL,
    definition TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (table_name, name)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS aliases_name ON aliases (name);
CREATE TABLE IF NOT EXISTS aliases_taken_over (source TEXT PRIMARY KEY) WITHOUT ROWID;
"""


@dataclass(frozen=True)
class CreateAlias:
    """Keep an alias."""

    target: TableFile
    alias: Alias

    @property
    def size_bytes(self) -> int:
        """About how many bytes the command holds."""
        return 1024 + len(msgspec.json.encode(self.alias))


@dataclass(frozen=True)
class DeleteAlias:
    """Take an alias away."""

    target: TableFile
    table: str
    name: str
    size_bytes: int = 1024


@dataclass(frozen=True)
class TakeOver:
    """Keep aliases that another program left, once for each source; those that have a name of ours already are not."""

    target: TableFile
    source: str
    aliases: tuple[Alias, ...]

    @property
    def size_bytes(self) -> int:
        """About how many bytes the command holds."""
        return 1024 + len(msgspec.json.encode(self.aliases))


def alias_file(path: Any) -> TableFile:
    """The store that a file of aliases is."""
    return TableFile(path, prepare)


def prepare(connection: apsw.Connection) -> None:
    """Make what is missing, in the transaction that is open."""
    connection.execute(CREATE + used_keys.CREATE)


def create(connection: apsw.Connection, command: CreateAlias, stamp: TableStamp) -> None:
    """Keep an alias. AliasExists if its table has one of this name that can be read."""
    alias = command.alias
    here = _read(connection, "WHERE table_name = ? AND name = ?", (alias.table, alias.name))
    if here and here[0].alias is None:
        connection.execute("DELETE FROM aliases WHERE table_name = ? AND name = ?", (alias.table, alias.name))
    if not _insert(connection, command.alias, stamp):
        raise AliasExists("there is an alias of this name already", name=command.alias.name)


def delete(connection: apsw.Connection, command: DeleteAlias, stamp: TableStamp) -> None:
    """Take an alias away. AliasNotFound."""
    connection.execute("DELETE FROM aliases WHERE table_name = ? AND name = ?", (command.table, command.name))
    if not connection.changes():
        raise not_found(command.name)


def take_over(connection: apsw.Connection, command: TakeOver, stamp: TableStamp) -> int:
    """Keep what is new of a source that was not taken over yet; how many that is."""
    connection.execute("INSERT OR IGNORE INTO aliases_taken_over VALUES (?)", (command.source,))
    if not connection.changes():
        return 0
    return sum(_insert(connection, alias, stamp) for alias in command.aliases)


def _insert(connection: apsw.Connection, alias: Alias, stamp: TableStamp) -> bool:
    connection.execute(
        "INSERT OR IGNORE INTO aliases VALUES (?, ?, ?, ?)",
        (alias.table, alias.name, msgspec.json.encode(alias).decode(), stamp.at_ms // 1000),
    )
    return connection.changes() > 0


class Line(NamedTuple):
    """An alias as it stands; `alias` is None if another program has made something else of it. The names as texts."""

    table: str
    name: str
    alias: Alias | None


def named(connection: apsw.Connection, name: str) -> list[Line]:
    """The aliases of a name, of whatever table."""
    return _read(connection, "WHERE name = ? ORDER BY table_name", (name,))


def every(connection: apsw.Connection, limit: int) -> list[Line]:
    """The first `limit` aliases, by table and name."""
    return _read(connection, "ORDER BY table_name, name LIMIT ?", (limit,))


def sources_taken_over(connection: apsw.Connection) -> set[str]:
    """Which sources were taken over already."""
    if not _has(connection, "aliases_taken_over"):
        return set()
    return {shown(row[0]) for row in connection.execute("SELECT CAST(source AS BLOB) FROM aliases_taken_over")}


def _has(connection: apsw.Connection, table: str) -> bool:
    sql = "SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = ?"
    return connection.execute(sql, (table,)).fetchone() is not None


def _read(connection: apsw.Connection, rest: str, bindings: tuple[Any, ...]) -> list[Line]:
    if not _has(connection, "aliases"):
        return []
    # As bytes: another program may have put a text there that is no UTF-8.
    columns = (f"CAST({column} AS BLOB)" for column in ("table_name", "name", "definition"))
    rows = connection.execute(f"SELECT {', '.join(columns)} FROM aliases {rest}", bindings)
    return [Line(shown(table), shown(name), _alias(table, name, text)) for table, name, text in rows]


def shown(name: Any) -> str:
    """A name that another program may have written, as every reader can show it."""
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else str(name)


def _alias(table: Any, name: Any, text: Any) -> Alias | None:
    try:
        named = {"table": table.decode(), "name": name.decode()}
        return msgspec.convert({**strict_json.parse(text), **named}, Alias)
    except (AttributeError, TypeError, ValueError, msgspec.ValidationError):
        return None


TABLE_DECIDERS: Mapping[type[Any], TableDecider] = {CreateAlias: create, DeleteAlias: delete, TakeOver: take_over}
