"""Taking old versions away for good: an operator's act, slice by slice, in the file's own transactions.

An entry goes if it is older than a time and not among the newest of its row; a chunk that goes in part is written anew
without it. What is left still says what it said: a deletion whose row stood in the entry before takes that along. The
newest entry of a row that is there always stays, so that no version is ever given twice; of a row that is gone all may
go.

The bytes are still in the file's free pages afterwards, until the file is written anew (table_reading.py).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import apsw
import msgspec

from convmem.limits import PURGE_ROWS_AT_ONCE
from convmem.tables import chunks, history, queries
from convmem.tables.chunks import Chunk, Entry
from convmem.targets import TableDecider, TableFile, TableStamp

OF_ROW = "WHERE table_name = ? AND row_id = ?"


@dataclass(frozen=True)
class PurgeHistory:
    """Purge some rows behind `after`. `before_s`: only what was recorded before; `keep`: so many of each row stay."""

    target: TableFile
    table: str
    before_s: int
    keep: int
    after: str = ""
    dry_run: bool = False
    size_bytes: int = 1024


class Purged(NamedTuple):
    """How many entries went, how many chunks could not be read, and the row to go on behind (None: that was all)."""

    entries: int
    damaged: int
    after: str | None


def purge(connection: apsw.Connection, command: PurgeHistory, stamp: TableStamp) -> Purged:
    """Purge the history of some rows; a dry run only counts."""
    rows = _rows(connection, command)
    entries = damaged = 0
    for row_id in rows:
        last = history.last_version(connection, command.table, row_id)
        is_there = queries.read_raw(connection, row_id) is not None
        upto = last - max(command.keep, 1 if is_there else 0)
        gone, unread = _purge_row(connection, command, row_id, upto)
        entries, damaged = entries + gone, damaged + unread
    return Purged(entries, damaged, rows[-1] if len(rows) == PURGE_ROWS_AT_ONCE else None)


def _rows(connection: apsw.Connection, command: PurgeHistory) -> list[str]:
    """The next rows that have any history."""
    tiers = (f"SELECT row_id FROM {tier} WHERE table_name = ? AND row_id > ?" for tier in queries.HISTORY_TIERS)
    sql = f"SELECT row_id FROM ({' UNION '.join(tiers)}) ORDER BY row_id LIMIT ?"
    bindings = (*(command.table, command.after) * 2, PURGE_ROWS_AT_ONCE)
    return [row[0] for row in connection.execute(sql, bindings)]


def _purge_row(connection: apsw.Connection, command: PurgeHistory, row_id: str, upto: int) -> tuple[int, int]:
    """How many entries of a row up to a version went, and how many chunks could not be read."""
    of_row = (command.table, row_id)
    old = f"{OF_ROW} AND version <= ? AND recorded_at < ?"
    bindings = (*of_row, upto, command.before_s)
    (gone,) = connection.execute(f"SELECT count(*) FROM _row_history {old}", bindings).fetchone() or (0,)
    if not command.dry_run:
        _keep_what_was(connection, command, row_id, upto)
        connection.execute(f"DELETE FROM _row_history {old}", bindings)
    damaged = 0
    for chunk in chunks.below(connection, *of_row, upto + 1, command.before_s - 1):
        found = chunks.entries(connection, chunk)
        if found is None:
            damaged += 1
            continue
        kept = [entry for entry in found if entry.version > upto or entry.recorded_at >= command.before_s]
        gone += len(found) - len(kept)
        if len(kept) < len(found) and not command.dry_run:
            _replace(connection, chunk, kept)
    return int(gone), damaged


def _keep_what_was(connection: apsw.Connection, command: PurgeHistory, row_id: str, upto: int) -> None:
    """Let a deletion that stays hold the row it deleted, where only the entry before says it."""
    sql = (
        f"SELECT version FROM _row_history {OF_ROW} AND op = 'delete' AND prev_data_json IS NULL"
        " AND NOT (version <= ? AND recorded_at < ?)"
    )
    for (version,) in connection.execute(sql, (command.table, row_id, upto, command.before_s)).fetchall():
        found = history.at_version(connection, command.table, row_id, int(str(version)))
        if found is not None and found.prev_data_json is not None:
            connection.execute(
                f"UPDATE _row_history SET prev_data_json = ? {OF_ROW} AND version = ?",
                (found.prev_data_json, command.table, row_id, version),
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
