"""A toy domain of table files, so that tests of their store need no real one: words under keys, with a history.

`Put` changes two tables, so that half a command can be told from a whole one. Other commands meet what can go wrong in
a file: a refusal half-way, a fault of ours, a statement that takes its transaction along.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apsw

from convmem.domain import Domain
from convmem.errors import Conflict, NotFound
from convmem.targets import TableFile, TableStamp

WORD_MAX = 100_000


def prepare(connection: apsw.Connection) -> None:
    connection.execute("CREATE TABLE IF NOT EXISTS word (key TEXT PRIMARY KEY, word TEXT, id TEXT)")
    connection.execute("CREATE TABLE IF NOT EXISTS past (key TEXT, word TEXT, at_ms INTEGER, device TEXT)")


def shelf(path: Path) -> TableFile:
    """A table file of this domain."""
    return TableFile(path, prepare)


@dataclass(frozen=True)
class Put:
    """Put a word under a key; refused half-way if it is too long."""

    target: TableFile
    key: str
    word: str = ""

    @property
    def size_bytes(self) -> int:
        return 100 + len(self.key) + len(self.word)


@dataclass(frozen=True)
class Take:
    """Take away what is under a key."""

    target: TableFile
    key: str
    size_bytes: int = 100


@dataclass(frozen=True)
class Do:
    """Do to the file whatever the test likes."""

    target: TableFile
    what: Callable[[apsw.Connection], Any]
    size_bytes: int = 100


def put(connection: apsw.Connection, command: Put, stamp: TableStamp) -> dict[str, Any]:
    made = stamp.new_id()
    connection.execute(
        "INSERT INTO word VALUES (?, ?, ?) ON CONFLICT (key) DO UPDATE SET word = excluded.word",
        (command.key, command.word, made),
    )
    if len(command.word) > WORD_MAX:
        raise Conflict("the word is too long")
    connection.execute(
        "INSERT INTO past VALUES (?, ?, ?, ?)", (command.key, command.word, stamp.at_ms, stamp.origin.device)
    )
    found: Any = connection.execute("SELECT count(*) FROM past WHERE key = ?", (command.key,)).fetchone()
    return {"key": command.key, "version": found[0], "id": made}


def take(connection: apsw.Connection, command: Take, stamp: TableStamp) -> dict[str, Any]:
    connection.execute("DELETE FROM word WHERE key = ?", (command.key,))
    if not connection.changes():
        raise NotFound("no such key")
    connection.execute("DELETE FROM past WHERE key = ?", (command.key,))
    return {"taken": command.key}


def do(connection: apsw.Connection, command: Do, stamp: TableStamp) -> Any:
    return command.what(connection)


TABLES = Domain(name="shelves", create="", deciders={}, appliers={}, table_deciders={Put: put, Take: take, Do: do})


def words(path: Path) -> dict[str, str]:
    """Every word by its key, as any other program reads the file: not through the store."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        rows: list[Any] = connection.execute("SELECT key, word FROM word").fetchall()
        return dict(rows)
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()


def torn(path: Path) -> list[str]:
    """Keys of commands that are in the file by half, and what SQLite finds wrong with it."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        halves: list[Any] = connection.execute(
            "SELECT key FROM word WHERE key NOT IN (SELECT key FROM past)"
            " UNION ALL SELECT key FROM past WHERE key NOT IN (SELECT key FROM word)"
        ).fetchall()
        found: list[Any] = connection.execute("PRAGMA integrity_check").fetchall()
        return [row[0] for row in halves] + [row[0] for row in found if row[0] != "ok"]
    finally:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.close()
