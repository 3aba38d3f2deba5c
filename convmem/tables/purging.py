"""Taking old versions away for good: an operator's act, piece by piece, in the file's own transactions.

An entry goes if it is older than a time and not among the newest of its row. The newest stays in any case, so that no
version is ever given twice; of a row that is gone it stays without its texts, if it is to go. What is left still says
what it said: a deletion whose row stood only in the entry before takes that along.

A piece is one chunk of the archive or some entries of the recent tier, the oldest first, so that no transaction holds
up others for long however often a row was changed. A chunk that goes in part is written anew without it; one that
cannot be read is left and named.

The bytes are still in the file's free pages afterwards, until the file is written anew (store/table_vacuum.py). That
this is still to be done stands in the file itself, written by the transaction that made it necessary: a process that
dies in between, or a disk that is full, must not leave for good what was purged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw
import msgspec

from convmem.limits import PURGE_ENTRIES_AT_ONCE, PURGE_ROWS_AT_ONCE
from convmem.tables import chunks, history, queries
from convmem.tables.chunks import Chunk, Entry
from convmem.targets import TableDecider, TableFile, TableStamp

# What stands for the row that a deletion took away, once nobody shall know it: JSON, as what it stands for.
PURGED = "null"
OF_ROW = "WHERE table_name = ? AND row_id = ?"
COLUMNS = "version, recorded_at, op, data_json, prev_data_json, origin"


class Place(NamedTuple):
    """How far a purge has come: the versions of a row up to one are done, and all rows before it."""

    row_id: str = ""
    version: int = 0


START = Place()


class Damaged(NamedTuple):
    """Versions of a row that cannot be read, and so were left."""

    row_id: str
    version_start: int
    version_end: int


@dataclass(frozen=True)
class Asked:
    """Which versions go: those recorded before a time in seconds, but not the `keep` newest of each row."""

    table: str
    before_s: int
    keep: int


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


class Row(NamedTuple):
    """What a purge must know of a row: the newest version that may go, and the newest of all."""

    row_id: str
    upto: int
    newest: int


class Piece(NamedTuple):
    """Consecutive entries of a row, oldest first, and the chunk that they stand in (None: the recent tier)."""

    entries: list[Entry]
    chunk: Chunk | None


def purge(connection: apsw.Connection, command: PurgeHistory, stamp: TableStamp) -> Purged:
    """Purge as much of the history as one transaction shall."""
    done = _walk(connection, command.asked, command.after, is_dry=False)
    if done.entries:
        connection.execute("INSERT OR IGNORE INTO _purge_unfinished (place) VALUES (1)")
    return done


def count(connection: apsw.Connection, asked: Asked, after: Place = START) -> Purged:
    """What `purge` would do, on a connection that only reads."""
    return _walk(connection, asked, after, is_dry=True)


def is_unfinished(connection: apsw.Connection) -> bool:
    """True if the file still holds bytes of what was purged."""
    there = connection.execute("SELECT 1 FROM sqlite_schema WHERE name = '_purge_unfinished'").fetchone()
    return there is not None and connection.execute("SELECT 1 FROM _purge_unfinished").fetchone() is not None


def finish(connection: apsw.Connection) -> None:
    """Write down that the file was written anew."""
    connection.execute("DELETE FROM _purge_unfinished")


def _walk(connection: apsw.Connection, asked: Asked, after: Place, *, is_dry: bool) -> Purged:
    entries, looked_at, damaged = 0, 0, list[Damaged]()
    row_ids = _row_ids(connection, asked.table, after)
    for number, row_id in enumerate(row_ids):
        row = _row(connection, asked, row_id)
        version = after.version if row_id == after.row_id else 0
        while (piece := _piece(connection, asked, row, version, damaged)) is not None:
            entries += _purge_piece(connection, asked, row, piece, is_dry=is_dry)
            looked_at, version = looked_at + len(piece.entries), piece.entries[-1].version
            if looked_at >= PURGE_ENTRIES_AT_ONCE:
                return Purged(entries, damaged, Place(row_id, version))
        if number == PURGE_ROWS_AT_ONCE:
            return Purged(entries, damaged, Place(row_id, row.newest))
    return Purged(entries, damaged, None)


def _row_ids(connection: apsw.Connection, table: str, after: Place) -> list[str]:
    """The next rows that have any history, the one that is being worked on first."""
    tiers = (f"SELECT row_id FROM {tier} WHERE table_name = ? AND row_id >= ?" for tier in queries.HISTORY_TIERS)
    sql = f"SELECT row_id FROM ({' UNION '.join(tiers)}) ORDER BY row_id LIMIT ?"
    return [row[0] for row in connection.execute(sql, (*(table, after.row_id) * 2, PURGE_ROWS_AT_ONCE + 1))]


def _row(connection: apsw.Connection, asked: Asked, row_id: str) -> Row:
    is_there = queries.read_raw(connection, row_id) is not None
    newest = history.last_version(connection, asked.table, row_id)
    # The newest of all stays, if need be without its texts.
    upto = min(_upto(connection, asked, row_id), newest if asked.keep == 0 and not is_there else newest - 1)
    return Row(row_id, upto, newest)


def _upto(connection: apsw.Connection, asked: Asked, row_id: str) -> int:
    """The newest version that is not among the newest `keep` of those that are there; versions may have gaps."""
    of_row, left = (asked.table, row_id), asked.keep
    sql = f"SELECT version FROM _row_history {OF_ROW} ORDER BY version DESC"
    found = connection.execute(f"{sql} LIMIT 1 OFFSET ?", (*of_row, left)).fetchone()
    if found is not None:
        return int(found[0])
    (recent,) = connection.execute(f"SELECT count(*) FROM _row_history {OF_ROW}", of_row).fetchone() or (0,)
    left -= int(recent)
    for chunk in chunks.below(connection, *of_row, chunks.BEHIND_ALL, chunks.BEHIND_ALL):
        if left < chunk.entry_count:
            kept = chunks.entries(connection, chunk) if left else None
            # Of a chunk that cannot be read nothing is told apart; it is left in any case.
            return chunk.version_end if kept is None else kept[-1 - left].version
        left -= chunk.entry_count
    return 0


def _piece(connection: apsw.Connection, asked: Asked, row: Row, version: int, damaged: list[Damaged]) -> Piece | None:
    """The next entries above a version that may go, and those that stand in one chunk with them; chunks that cannot be
    read are passed over and named.
    """
    of_row, latest_s = (asked.table, row.row_id), asked.before_s - 1
    for chunk in reversed(chunks.below(connection, *of_row, row.upto + 1, latest_s)):
        if chunk.version_end > version:
            found = chunks.entries(connection, chunk)
            if found is not None:
                return Piece(found, chunk)
            version = chunk.version_end
            damaged.append(Damaged(row.row_id, chunk.version_start, chunk.version_end))
    sql = f"SELECT {COLUMNS} FROM _row_history {OF_ROW} AND version > ? AND version <= ? ORDER BY version LIMIT ?"
    bindings = (*of_row, version, row.upto, PURGE_ENTRIES_AT_ONCE)
    entries = [Entry(*found) for found in connection.execute(sql, bindings)]
    return Piece(entries, None) if entries else None


def _purge_piece(connection: apsw.Connection, asked: Asked, row: Row, piece: Piece, *, is_dry: bool) -> int:
    """Take the old entries out of a piece; how many they were."""
    goes = [entry.version <= row.upto and entry.recorded_at < asked.before_s for entry in piece.entries]
    left, changed, gone = list[Entry](), list[Entry](), 0
    before: Entry | None = None
    for entry, is_old in zip(piece.entries, goes, strict=True):
        kept: Entry | None = entry
        if is_old and entry.version == row.newest:
            kept = _emptied(entry)
            gone += kept != entry
        elif is_old:
            kept, gone = None, gone + 1
        elif before is not None:
            kept = _with_what_was(entry, before)
        if kept is not None:
            left.append(kept)
            changed += [kept] if kept != entry else []
        before = entry if kept is None else None
    if gone and not is_dry:
        _put(connection, asked.table, row.row_id, piece, left, changed)
        if before is not None:
            _tell_next(connection, asked.table, row.row_id, before)
    return gone


def _emptied(entry: Entry) -> Entry:
    """An entry without its texts. Of a deletion that says nothing of what it deleted, others would look for it in the
    entry before.
    """
    return msgspec.structs.replace(entry, data_json=None, prev_data_json=PURGED if entry.op == "delete" else None)


def _with_what_was(entry: Entry, before: Entry) -> Entry:
    """An entry whose predecessor goes: a deletion takes along the row that it deleted."""
    is_said = entry.op != "delete" or entry.prev_data_json is not None
    return entry if is_said else msgspec.structs.replace(entry, prev_data_json=before.data_json)


def _tell_next(connection: apsw.Connection, table: str, row_id: str, gone: Entry) -> None:
    """Let the entry behind the last one that went take along what only that said."""
    for chunk in reversed(chunks.below(connection, table, row_id, chunks.BEHIND_ALL, chunks.BEHIND_ALL)):
        if chunk.version_start > gone.version:
            found = chunks.entries(connection, chunk)
            if found and (told := _with_what_was(found[0], gone)) != found[0]:
                _replace(connection, chunk, [told, *found[1:]])
            return
    sql = f"SELECT {COLUMNS} FROM _row_history {OF_ROW} AND version > ? ORDER BY version LIMIT 1"
    row = connection.execute(sql, (table, row_id, gone.version)).fetchone()
    if row is not None and (told := _with_what_was(Entry(*row), gone)) != Entry(*row):
        _rewrite(connection, table, row_id, [told])


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
