"""What every row of a table has been, in two tiers of the table's own file.

The newest entries of a row stand in `_row_history` as they are. Beyond `keep_recent + chunk_min` of them the oldest
become a chunk in `_row_history_archive` (tables/chunks.py). Reading knows no difference between the tiers. The layout
is that of mini-app-mcp, so that its files work here and ours there; `origin` is a nullable column that only we fill.

What a row was before a change is what the entry before it says, so it is written down only where that is not so: after
a deletion (whose entry must hold the row), and where the row was changed without history. Versions count from 1 per row
over both tiers and never start again.

A chunk that cannot be read hides nothing: a page names its versions as damaged, and who asks for what may be in it gets
StorageFault.

Rejected: both sides of every change (twice the size), and packing by a task of its own (whoever reads the file with
another tool would see the size grow without bound while it is behind).
"""

from collections.abc import Iterator
from itertools import takewhile
from typing import Any, NamedTuple

import apsw
import msgspec

from convmem.domain import Origin
from convmem.errors import StorageFault
from convmem.limits import HISTORY_CHUNK_MIN_DEFAULT, HISTORY_KEEP_RECENT_DEFAULT, VERSION_MAX
from convmem.tables import chunks
from convmem.tables.chunks import Entry, Op

CREATE = """
CREATE TABLE IF NOT EXISTS _row_history (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    table_name TEXT NOT NULL,
    row_id TEXT NOT NULL,
    version INTEGER NOT NULL,
    recorded_at INTEGER NOT NULL,
    op TEXT NOT NULL CHECK (op IN ('create','update','delete')),
    data_json TEXT,
    prev_data_json TEXT,
    origin TEXT
);
CREATE UNIQUE INDEX IF NOT EXISTS idx_row_history_version ON _row_history(table_name, row_id, version);
"""
_COLUMNS = "version, recorded_at, op, data_json, prev_data_json, origin"
_OF_ROW = "WHERE table_name = ? AND row_id = ?"


class Keeping(NamedTuple):
    """How many entries of a row stay as they are, and how many more there are before the oldest become a chunk."""

    keep_recent: int = HISTORY_KEEP_RECENT_DEFAULT
    chunk_min: int = HISTORY_CHUNK_MIN_DEFAULT


class Damage(NamedTuple):
    """Versions that cannot be read any more."""

    version_start: int
    version_end: int


class Version(NamedTuple):
    """What a list says of an entry; `size_bytes` is how large the JSON of the row was afterwards, 0 if deleted."""

    version: int
    op: Op
    recorded_at: int
    origin: Origin | None
    size_bytes: int


class Page(NamedTuple):
    """Versions of a row, newest first, and those among them that are damaged. `before` is where the next page begins,
    None behind the oldest.
    """

    versions: list[Version]
    damaged: list[Damage]
    before: int | None


def prepare(connection: apsw.Connection) -> None:
    """Make the tables where they are missing, and add the column that files of mini-app-mcp lack. In a transaction."""
    connection.execute(CREATE + chunks.CREATE)
    if "origin" not in {row[1] for row in connection.execute("PRAGMA table_info(_row_history)")}:
        connection.execute("ALTER TABLE _row_history ADD COLUMN origin TEXT")


def append(
    connection: apsw.Connection,
    table: str,
    row_id: str,
    op: Op,
    data_json: str | None,
    prev_data_json: str | None,
    origin: Origin | None,
    recorded_at: int,
    *,
    keeping: Keeping | None = None,
) -> int:
    """Write down a change in the transaction that makes it, and return its version.

    `data_json` is the row afterwards (None after a deletion), `prev_data_json` before (None for a new one);
    `recorded_at` in seconds since the Unix epoch.
    """
    version = last_version(connection, table, row_id) + 1
    if op != "delete" and prev_data_json is not None and _says(connection, table, row_id, version - 1, prev_data_json):
        prev_data_json = None
    connection.execute(
        f"INSERT INTO _row_history (table_name, row_id, {_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (table, row_id, version, recorded_at, op, data_json, prev_data_json, chunks.origin_json(origin)),
    )
    _pack_oldest(connection, table, row_id, keeping or Keeping())
    return version


def last_version(connection: apsw.Connection, table: str, row_id: str) -> int:
    """The version of the newest entry of a row, 0 if it has none; both tiers count. StorageFault if it is no number."""
    row = connection.execute(
        f"SELECT max((SELECT coalesce(max(version), 0) FROM _row_history {_OF_ROW}),"
        f" (SELECT coalesce(max(version_end), 0) FROM _row_history_archive {_OF_ROW}))",
        (table, row_id, table, row_id),
    ).fetchone()
    assert row is not None
    if not isinstance(row[0], int) or row[0] > VERSION_MAX:
        raise StorageFault("this row's history holds something else than versions")
    return row[0]


def read(connection: apsw.Connection, table: str, row_id: str, limit: int, before: int | None = None) -> Page:
    """The newest `limit` versions of a row, of those below `before`; `limit` at least 1."""
    versions: list[Version] = []
    damaged: list[Damage] = []
    for found in _newest_first(connection, table, row_id, before):
        if len(versions) == limit:
            return Page(versions, damaged, versions[-1].version)
        if isinstance(found, Damage):
            damaged.append(found)
        else:
            size = len((found.data_json or "").encode())
            versions.append(Version(found.version, found.op, found.recorded_at, found.whence, size))
    return Page(versions, damaged, None)


def at_version(connection: apsw.Connection, table: str, row_id: str, version: int) -> Entry | None:
    """The entry of a version, None if there is none; that of a deletion holds in `prev_data_json` the row it deleted.

    StorageFault if the entry is among damaged ones.
    """
    found = next(_newest_first(connection, table, row_id, version + 1), None)
    if isinstance(found, Damage):
        if version <= found.version_end:
            raise _damaged(found)
        return None
    return _with_what_was(connection, table, row_id, found) if found and found.version == version else None


def at_time(connection: apsw.Connection, table: str, row_id: str, recorded_at: int) -> Entry | None:
    """The newest entry at or before a time in seconds since the Unix epoch, as `at_version` gives it.

    Where a clock stepped back, the newest is the one of the highest version. StorageFault if the entry may be among
    damaged ones.
    """
    found = next(_newest_first(connection, table, row_id, None, recorded_at), None)
    if isinstance(found, Damage):
        raise _damaged(found)
    return _with_what_was(connection, table, row_id, found) if found else None


def first_recorded_at(connection: apsw.Connection, table: str, row_id: str) -> int | None:
    """When version 1 was recorded, in seconds since the Unix epoch, even if it is damaged; None if it is gone."""
    for found in _newest_first(connection, table, row_id, 2):
        if not isinstance(found, Damage):
            return found.recorded_at
    row = connection.execute(
        f"SELECT recorded_start FROM _row_history_archive {_OF_ROW} AND version_start = 1", (table, row_id)
    ).fetchone()
    return row and int(row[0])


def _with_what_was(connection: apsw.Connection, table: str, row_id: str, entry: Entry) -> Entry:
    """An entry whose row before the change is there if it deleted it: files of others hold it in the entry before."""
    if entry.op != "delete" or entry.prev_data_json is not None:
        return entry
    for before in _newest_first(connection, table, row_id, entry.version):
        if isinstance(before, Damage):
            raise _damaged(before)
        return msgspec.structs.replace(entry, prev_data_json=before.data_json)
    return entry


def _newest_first(
    connection: apsw.Connection, table: str, row_id: str, before: int | None, until: int | None = None
) -> Iterator[Entry | Damage]:
    """Every entry of a row below a version and not after a time, downwards through both tiers; a chunk that cannot be
    read as its damage.
    """
    before = chunks.BEHIND_ALL if before is None else before
    until = chunks.BEHIND_ALL if until is None else until
    raw = (
        f"SELECT {_COLUMNS} FROM _row_history {_OF_ROW} AND version < ? AND recorded_at <= ?"
        " ORDER BY version DESC LIMIT 1"
    )
    while recent := _entry(connection, raw, (table, row_id, before, until)):
        yield recent
        before = recent.version_start if isinstance(recent, Damage) else recent.version
    for chunk in chunks.below(connection, table, row_id, before, until):
        found = chunks.entries(connection, chunk)
        if found is None:
            yield Damage(chunk.version_start, chunk.version_end)
            continue
        for entry in reversed(found):
            if entry.version < before and entry.recorded_at <= until:
                yield entry
                before = entry.version


def _entry(connection: apsw.Connection, sql: str, bindings: tuple[str | int, ...]) -> Entry | Damage | None:
    """The entry that a question finds first, as damage if its texts are no UTF-8: another program may write any."""
    try:
        row = connection.execute(sql, bindings).fetchone()
    except UnicodeDecodeError:
        row = connection.execute(sql.replace(_COLUMNS, "version", 1), bindings).fetchone()
        assert row is not None, "it was found a moment ago"
        return Damage(row[0], row[0])
    return Entry(*row) if row else None


def _sound(rows: Iterator[tuple[Any, ...]]) -> Iterator[Entry]:
    """Entries, up to the first that is none."""
    try:
        yield from takewhile(lambda entry: entry.is_sound, (Entry(*row) for row in rows))
    except UnicodeDecodeError:
        return


def _says(connection: apsw.Connection, table: str, row_id: str, version: int, data_json: str) -> bool:
    """True if the entry of a version, which is among the recent ones, says that the row was this."""
    found = connection.execute(
        f"SELECT 1 FROM _row_history {_OF_ROW} AND version = ? AND data_json = ?", (table, row_id, version, data_json)
    ).fetchone()
    return found is not None


def _pack_oldest(connection: apsw.Connection, table: str, row_id: str, keeping: Keeping) -> None:
    """Make a chunk of the oldest entries if there are too many.

    A file of others may have thousands: they become chunks one by one, with the changes that follow. What is no entry
    there stays as it is, and so does what is newer.
    """
    count = connection.execute(f"SELECT count(*) FROM _row_history {_OF_ROW}", (table, row_id)).fetchone()
    assert count is not None
    if count[0] <= keeping.keep_recent + keeping.chunk_min:
        return
    rows = connection.execute(
        f"SELECT {_COLUMNS} FROM _row_history {_OF_ROW} ORDER BY version LIMIT ?",
        (table, row_id, min(count[0] - keeping.keep_recent, keeping.chunk_min + 1)),
    )
    oldest = list(_sound(rows))
    if not oldest:
        return
    filed = chunks.file(connection, table, row_id, oldest, chunk_min=keeping.chunk_min)
    connection.execute(
        f"DELETE FROM _row_history {_OF_ROW} AND version <= ?", (table, row_id, oldest[filed - 1].version)
    )


def _damaged(damage: Damage) -> StorageFault:
    return StorageFault(f"versions {damage.version_start} to {damage.version_end} of this row's history are damaged")
