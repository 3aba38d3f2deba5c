"""Taking old versions away for good: an operator's act, piece by piece, in the file's own transactions.

An entry goes if it is older than a time and not among the newest of its row. The newest stays in any case, so that no
version is ever given twice; of a row that is gone it stays without its texts, if it is to go. What is left still says
what it said (purge_rules.py).

A piece is one chunk of the archive or some entries of the recent tier, the oldest first, so that no transaction holds
up others for long however often a row was changed and however large it is. A chunk that goes in part is written anew
without it. What cannot be read, or is no entry because another program put something else there, is left and named.

The bytes are still in the file's free pages afterwards, until the file is written anew (store/table_vacuum.py); the
file says so itself (purge_marks.py).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw
import msgspec

from convmem.errors import StorageFault
from convmem.limits import PURGE_BYTES_AT_ONCE, PURGE_ENTRIES_AT_ONCE, PURGE_ROWS_AT_ONCE
from convmem.tables import chunks, purge_marks, queries
from convmem.tables.chunks import BEHIND_ALL, Chunk, Entry
from convmem.tables.purge_reach import OF_ROW, Asked, Row, reach, recent
from convmem.tables.purge_rules import left_of, without_before
from convmem.targets import TableDecider, TableFile, TableStamp

# Texts as bytes: one that is no UTF-8 must go like any other.
COLUMNS = "version, recorded_at, op, CAST(data_json AS BLOB), CAST(prev_data_json AS BLOB)"


class Place(NamedTuple):
    """How far a purge has come: the versions of a row up to one are done, and all rows before it."""

    row_id: str = ""
    version: int = 0


START = Place()


class Damaged(NamedTuple):
    """Versions of a row that cannot be read, and so were left; None: nothing of its history was looked at."""

    row_id: str
    version_start: int | None
    version_end: int | None


@dataclass(frozen=True)
class PurgeHistory:
    """Purge some versions behind `after`."""

    target: TableFile
    asked: Asked
    after: Place = START
    size_bytes: int = 1024


class Purged(NamedTuple):
    """How many entries went, what was damaged, and the place to go on behind (None: that was all)."""

    entries: int
    damaged: list[Damaged]
    after: Place | None


class Piece(NamedTuple):
    """Consecutive entries of a row, oldest first, the chunk that they stand in (None: the recent tier), the version
    that was looked at last, and how much text they hold.
    """

    entries: list[Entry]
    chunk: Chunk | None
    end: int
    size: int


def purge(connection: apsw.Connection, command: PurgeHistory, stamp: TableStamp) -> Purged:
    """Purge as much of the history as one transaction shall."""
    done = _walk(connection, command.asked, command.after, is_dry=False)
    if done.entries:
        purge_marks.mark(connection)
    return done


def count(connection: apsw.Connection, asked: Asked, after: Place = START) -> Purged:
    """What `purge` would do, on a connection that only reads. StorageFault if the file holds no table."""
    try:
        return _walk(connection, asked, after, is_dry=True)
    except apsw.SQLError as error:
        raise StorageFault("the table's file holds something else than a table") from error


def _walk(connection: apsw.Connection, asked: Asked, after: Place, *, is_dry: bool) -> Purged:
    entries, looked_at, size, damaged, done = 0, 0, 0, list[Damaged](), after
    for number, row_id in enumerate(_row_ids(connection, asked.table, after)):
        if number == PURGE_ROWS_AT_ONCE:
            return Purged(entries, damaged, done)
        done = Place(row_id, BEHIND_ALL)
        try:
            row = reach(connection, asked, row_id)
        except StorageFault:
            damaged.append(Damaged(row_id, None, None))
            continue
        version = after.version if row_id == after.row_id else 0
        while (piece := _piece(connection, asked, row, version, damaged)) is not None:
            entries += _purge_piece(connection, asked, row, piece, is_dry=is_dry)
            looked_at, size, version = looked_at + len(piece.entries), size + piece.size, piece.end
            if looked_at >= PURGE_ENTRIES_AT_ONCE or size >= PURGE_BYTES_AT_ONCE:
                return Purged(entries, damaged, Place(row_id, version))
        entries += _purge_unrecorded(connection, asked, row, is_dry=is_dry)
    return Purged(entries, damaged, None)


def _row_ids(connection: apsw.Connection, table: str, after: Place) -> Iterator[str]:
    """The rows that have any history, the one that is being worked on first; each is found when it is wanted."""
    row_id = after.row_id
    if row_id and after.version < BEHIND_ALL:
        yield row_id
    tiers = (
        f"SELECT min(row_id) AS id FROM {tier} WHERE table_name = ? AND row_id > ?" for tier in queries.HISTORY_TIERS
    )
    sql = f"SELECT min(id) FROM ({' UNION ALL '.join(tiers)})"
    while (found := connection.execute(sql, (table, row_id) * 2).fetchone()) and found[0] is not None:
        row_id = found[0]
        yield row_id


def _piece(connection: apsw.Connection, asked: Asked, row: Row, version: int, damaged: list[Damaged]) -> Piece | None:
    """The next entries above a version that may go, and those that stand in one chunk with them. What cannot be read is
    passed over and named.
    """
    of_row = (asked.table, row.row_id)
    for chunk in reversed(chunks.below(connection, *of_row, row.upto + 1, row.before_s - 1)):
        if chunk.version_end > version:
            found = chunks.entries(connection, chunk)
            if found is not None:
                return Piece(found, chunk, chunk.version_end, sum(map(_size, found)))
            version = chunk.version_end
            damaged.append(Damaged(row.row_id, chunk.version_start, chunk.version_end))
    sql = f"SELECT {COLUMNS} FROM _row_history {OF_ROW} AND version > ? AND version <= ? ORDER BY version LIMIT ?"
    entries, end, size = list[Entry](), version, 0
    for values in connection.execute(sql, (*of_row, version, row.upto, PURGE_ENTRIES_AT_ONCE)):
        entry = _entry(*values)
        end = entry.version
        if _is_sound(entry):
            entries.append(entry)
            size += _size(entry)
        else:
            damaged.append(Damaged(row.row_id, end, end))
        if size >= PURGE_BYTES_AT_ONCE:
            break
    return Piece(entries, None, end, size) if end != version else None


def _entry(version: Any, recorded_at: Any, op: Any, data: bytes | None, prev_data: bytes | None) -> Entry:
    """An entry of the recent tier as far as a purge needs it."""
    return Entry(version, recorded_at, op, _text(data), _text(prev_data))


def _text(data: bytes | None) -> Any:
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return data


def _is_sound(entry: Entry) -> bool:
    """False if another program put something else than a number where the time of an entry stands."""
    return isinstance(entry.recorded_at, int)


def _size(entry: Entry) -> int:
    return len(entry.data_json or "") + len(entry.prev_data_json or "")


def _purge_piece(connection: apsw.Connection, asked: Asked, row: Row, piece: Piece, *, is_dry: bool) -> int:
    """Take the old entries out of a piece; how many they were."""
    left = left_of(piece.entries, row.is_old, row.newest)
    if left.gone and not is_dry:
        _put(connection, asked.table, row.row_id, piece, left.entries, left.changed)
        if left.last_gone is not None:
            _tell_next(connection, asked.table, row, left.last_gone)
    return left.gone


def _tell_next(connection: apsw.Connection, table: str, row: Row, gone: Entry) -> None:
    """Let the entry behind the last one that went, if it stays, do without that."""
    found = _first_above(connection, (table, row.row_id), gone.version)
    if found is not None and not row.is_old(found.entries[0]):
        _put_first(connection, table, row.row_id, found, without_before(found.entries[0], gone))


def _purge_unrecorded(connection: apsw.Connection, asked: Asked, row: Row, *, is_dry: bool) -> int:
    """Take away what the oldest entry holds of the state before it, where that state would go if it had an entry: it
    was changed without history, or its entry went elsewhere. 1 if there was any.
    """
    of_row = (asked.table, row.row_id)
    archived = chunks.below(connection, *of_row, BEHIND_ALL, BEHIND_ALL)
    if recent(connection, of_row) + sum(chunk.entry_count for chunk in archived) != max(asked.keep, 1):
        return 0
    found = _first_above(connection, of_row, 0)
    if found is None or found.entries[0].recorded_at >= row.before_s:
        return 0
    told = without_before(found.entries[0])
    if told == found.entries[0]:
        return 0
    if not is_dry:
        _put_first(connection, asked.table, row.row_id, found, told)
    return 1


def _first_above(connection: apsw.Connection, of_row: tuple[str, str], version: int) -> Piece | None:
    """The oldest entry above a version, in a chunk with all that the chunk holds; None if it cannot be read."""
    for chunk in reversed(chunks.below(connection, *of_row, BEHIND_ALL, BEHIND_ALL)):
        if chunk.version_start > version:
            found = chunks.entries(connection, chunk)
            return Piece(found, chunk, chunk.version_end, 0) if found else None
    sql = f"SELECT {COLUMNS} FROM _row_history {OF_ROW} AND version > ? ORDER BY version LIMIT 1"
    values = connection.execute(sql, (*of_row, version)).fetchone()
    entry = None if values is None else _entry(*values)
    return Piece([entry], None, entry.version, 0) if entry is not None and _is_sound(entry) else None


def _put_first(connection: apsw.Connection, table: str, row_id: str, piece: Piece, told: Entry) -> None:
    """Let the first entry of a piece say something else."""
    if told != piece.entries[0]:
        _put(connection, table, row_id, piece, [told, *piece.entries[1:]], [told])


def _put(
    connection: apsw.Connection, table: str, row_id: str, piece: Piece, left: list[Entry], changed: Iterable[Entry]
) -> None:
    """Let a piece hold what is left of it. In a file of others an entry may stand in both tiers: it goes from both."""
    stays = {entry.version for entry in left}
    gone = [(table, row_id, entry.version) for entry in piece.entries if entry.version not in stays]
    connection.executemany(f"DELETE FROM _row_history {OF_ROW} AND version = ?", gone)
    _rewrite(connection, table, row_id, changed)
    if piece.chunk is not None:
        _replace(connection, piece.chunk, left)


def _rewrite(connection: apsw.Connection, table: str, row_id: str, entries: Iterable[Entry]) -> None:
    connection.executemany(
        f"UPDATE _row_history SET data_json = ?, prev_data_json = ? {OF_ROW} AND version = ?",
        [(entry.data_json, entry.prev_data_json, table, row_id, entry.version) for entry in entries],
    )


def _replace(connection: apsw.Connection, chunk: Chunk, kept: list[Entry]) -> None:
    if not kept:
        connection.execute("DELETE FROM _row_history_archive WHERE id = ?", (chunk.id,))
        return
    times = [entry.recorded_at for entry in kept]
    lines = b"".join(msgspec.json.encode(entry) + b"\n" for entry in kept)
    connection.execute(
        "UPDATE _row_history_archive SET version_start = ?, version_end = ?, recorded_start = ?, recorded_end = ?,"
        " entry_count = ?, blob = ? WHERE id = ?",
        (kept[0].version, kept[-1].version, min(times), max(times), len(kept), chunks.packed(lines), chunk.id),
    )


TABLE_DECIDERS: Mapping[type[Any], TableDecider] = {PurgeHistory: purge}
