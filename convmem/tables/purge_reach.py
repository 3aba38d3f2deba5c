"""How far a purge reaches into the history of a row: which of its versions may go, by their number and by their time.

Versions may have gaps, so entries are counted and versions are not. The newest of a row stays in any case.
"""

from dataclasses import dataclass
from typing import NamedTuple

import apsw

from convmem.errors import StorageFault
from convmem.tables import chunks, history
from convmem.tables.chunks import BEHIND_ALL, Entry

OF_ROW = "WHERE table_name = ? AND row_id = ?"
# What a chunk is filed under must be numbers, or nobody finds it.
_FILED = ("version_start", "version_end", "recorded_start", "recorded_end", "entry_count")


@dataclass(frozen=True)
class Asked:
    """Which versions go: those recorded before a time in seconds, but not the `keep` newest of each row."""

    table: str
    before_s: int
    keep: int


class Row(NamedTuple):
    """What a purge must know of a row: the newest version that may go, the newest of all, and before when it goes."""

    row_id: str
    upto: int
    newest: int
    before_s: int

    def is_old(self, entry: Entry) -> bool:
        """True if an entry is to go."""
        return entry.version <= self.upto and entry.recorded_at < self.before_s


def reach(connection: apsw.Connection, asked: Asked, row_id: str) -> Row:
    """How far a purge reaches into a row. StorageFault if something else than numbers stands where it is looked up."""
    of_row = (asked.table, row_id)
    is_filed = " AND ".join(f"typeof({name}) = 'integer'" for name in _FILED)
    for sql in (
        f"SELECT 1 FROM _row_history {OF_ROW} AND typeof(version) <> 'integer'",
        f"SELECT 1 FROM _row_history_archive {OF_ROW} AND NOT ({is_filed})",
    ):
        if connection.execute(sql, of_row).fetchone():
            raise StorageFault("this row's history holds something else than versions")
    newest = history.last_version(connection, *of_row)
    is_there = connection.execute("SELECT 1 FROM rows WHERE id = ?", (row_id,)).fetchone() is not None
    # The newest of all stays, if need be without its texts.
    upto = min(_upto(connection, asked, row_id), newest if asked.keep == 0 and not is_there else newest - 1)
    return Row(row_id, upto, newest, asked.before_s)


def _upto(connection: apsw.Connection, asked: Asked, row_id: str) -> int:
    """The newest version that is not among the newest `keep` of those that are there; versions may have gaps."""
    of_row, left = (asked.table, row_id), asked.keep
    sql = f"SELECT version FROM _row_history {OF_ROW} ORDER BY version DESC"
    found = connection.execute(f"{sql} LIMIT 1 OFFSET ?", (*of_row, left)).fetchone()
    if found is not None:
        return int(found[0])
    left -= recent(connection, of_row)
    for chunk in chunks.below(connection, *of_row, BEHIND_ALL, BEHIND_ALL):
        if left < chunk.entry_count:
            kept = chunks.entries(connection, chunk) if left else None
            # Of a chunk that cannot be read nothing is told apart; it is left in any case.
            return chunk.version_end if kept is None else kept[-1 - left].version
        left -= chunk.entry_count
    return 0


def recent(connection: apsw.Connection, of_row: tuple[str, str]) -> int:
    """How many entries of a row stand in the recent tier."""
    (recent,) = connection.execute(f"SELECT count(*) FROM _row_history {OF_ROW}", of_row).fetchone() or (0,)
    return int(recent)
