"""An index looked at from outside: what it says of itself, without a byte or a time of any file being changed.

An ordinary connection to a database with a WAL makes or writes the -shm beside it, and the last one to close folds the
WAL in. Without locks and as if alone SQLite keeps the list of the WAL's pages in memory instead
(sqlite.org/wal.html#noshm). Only for files that nobody writes: whoever reads looks afterwards whether they stayed.

Rejected: copying file and WAL first, as a check does. An index of gigabytes would be copied for one row.
"""

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import apsw

from convmem.domain import Domain
from convmem.store.sqlite import DAMAGE, State, configure, connect_to_still, read_state, shape


def connect_beside(path: Path) -> apsw.Connection:
    """Open a database, with the WAL that a killed process has left, for reading. apsw.CantOpenError."""
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists() or wal.stat().st_size == 0:
        # A missing WAL would be made.
        return connect_to_still(path)
    connection = apsw.Connection(
        f"{path.absolute().as_uri()}?mode=ro&vfs=unix-none", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    connection.execute("PRAGMA locking_mode = EXCLUSIVE").fetchall()
    configure(connection)
    return connection


def state_of(path: Path, domains: Sequence[Domain]) -> State | None:
    """What an index says of itself; None if it is damaged or of another version."""
    try:
        with closing(connect_beside(path)) as connection:
            return read_state(connection, shape(domains))
    except (apsw.Error, *DAMAGE):
        return None
