"""Table files: how SQLite opens them, and what an error of SQLite means there.

A table file belongs to its user and is its own truth, so it is opened otherwise than an index: COMMIT is the promise
(`synchronous=FULL`: the WAL is flushed by it), another program may hold a lock on it, and it may be damaged, replaced
or taken away at any time. None of that may reach further than this one file.

Rejected: the connections of the index with other settings. An index is nobody else's, waits longer for a lock, and is
thrown away where a table file is refused.
"""

import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import apsw

from convmem.errors import Busy, ConvmemError, StorageFault, StorageFull
from convmem.files import NO_SPACE, private_files
from convmem.limits import BUSY_RETRY_MS, STORAGE_FULL_RETRY_MS, TABLE_WAIT_MS
from convmem.store.sqlite import DAMAGE, configure

# What a statement raises because of the file, whatever the statement is.
OF_THE_FILE = (
    *(apsw.BusyError, apsw.LockedError, apsw.FullError, apsw.IOError, apsw.CantOpenError, apsw.ReadOnlyError),
    *(apsw.ProtocolError, apsw.PermissionsError, *DAMAGE),
)


ABSENT = (0, 0)


class FileIdentity(NamedTuple):
    """Which file bears a name, and which its WAL: device and number, ABSENT if it is not there or cannot be seen. Where
    a link bears the name it is that link, and a file in a directory that is one is not there: nothing is followed.

    `content` is the file's size and time of change. Beside a WAL only a checkpoint changes it, or somebody who copies
    another content over it, of which SQLite learns nothing.
    """

    file: tuple[int, int]
    wal: tuple[int, int]
    content: tuple[int, int]


def identity(path: Path) -> FileIdentity:
    """Return which files stand at a path and beside it now."""
    if stat.S_ISLNK(_mode(path.parent)):
        return FileIdentity(ABSENT, ABSENT, (0, 0))
    file, content = _which(path)
    return FileIdentity(file, _which(f"{path}-wal")[0], content)


def _which(path: Path | str) -> tuple[tuple[int, int], tuple[int, int]]:
    try:
        found = os.lstat(path)
    except OSError:
        return ABSENT, (0, 0)
    return (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns)


def _mode(path: Path) -> int:
    try:
        return os.lstat(path).st_mode
    except OSError:
        return 0


def connect_to_table(path: Path) -> apsw.Connection:
    """Open a connection that writes a table file, which is made (0600) if it is missing; its directory must be there.

    One of OF_THE_FILE if that cannot be, or a link stands in the path. Checkpoints are the caller's: a COMMIT does what
    it promises and no more.
    """
    with private_files():
        flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_NOFOLLOW
        connection = apsw.Connection(os.fspath(path), flags=flags)
        try:
            connection.set_busy_timeout(TABLE_WAIT_MS)
            configure(connection)
            mode = connection.pragma("journal_mode", "wal")
            if mode != "wal":
                raise apsw.CantOpenError(f"the file cannot have a WAL: {mode}")
            connection.pragma("synchronous", 2)
            connection.pragma("wal_autocheckpoint", 0)
        except OF_THE_FILE:
            leave(connection)
            raise
    return connection


def connect_to_read_table(path: Path, attached: Sequence[Path] = ()) -> apsw.Connection:
    """Open a connection that reads a table file and cannot write; its end moves nothing into the file.

    It sees the `attached` files as schemas `source_1`, `source_2`, … One of OF_THE_FILE if a file is not there,
    or a link stands in its path.
    """
    flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI | apsw.SQLITE_OPEN_NOFOLLOW
    connection = apsw.Connection(os.fspath(path), flags=flags)
    try:
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        connection.set_busy_timeout(TABLE_WAIT_MS)
        configure(connection)
        for number, other in enumerate(attached, start=1):
            connection.execute(f"ATTACH ? AS source_{number}", (f"{other.absolute().as_uri()}?mode=ro",))
        # SQLite looks into a file at the first question only.
        for schema in connection.db_names():
            connection.execute(f"SELECT count(*) FROM {schema}.sqlite_schema").fetchall()
    except OF_THE_FILE:
        connection.close()
        raise
    return connection


def connect_to_copy(path: Path) -> apsw.Connection:
    """Open a connection that fills a new file (0600) with a copy, which is flushed by whoever gives it its name."""
    with private_files():
        connection = apsw.Connection(os.fspath(path))
    configure(connection)
    return connection


def leave(connection: apsw.Connection) -> None:
    """Close a connection and touch nothing: what is in the WAL stays there."""
    connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
    connection.close()


def refusal(error: Exception, connection: apsw.Connection | None) -> ConvmemError:
    """Return what the callers of a file are told about one of OF_THE_FILE, raised on its connection if there is one."""
    if isinstance(error, apsw.BusyError | apsw.LockedError):
        return Busy("another program has locked the table's file", retry_after_ms=BUSY_RETRY_MS)
    if is_full(error, connection):
        return StorageFull("the disk took no more; nothing was stored", retry_after_ms=STORAGE_FULL_RETRY_MS)
    if isinstance(error, DAMAGE):
        return StorageFault("the table's file is damaged")
    if isinstance(error, apsw.ReadOnlyError | apsw.PermissionsError):
        return StorageFault("the table's file cannot be written")
    if getattr(error, "extendedresult", 0) == apsw.SQLITE_CANTOPEN_SYMLINK:
        return StorageFault("a link stands in the path of the table's file; nothing is followed")
    if isinstance(error, apsw.CantOpenError):
        return StorageFault("the table's file cannot be opened")
    return StorageFault("the disk failed at the table's file; whether this was stored is unknown")


def is_full(error: Exception, connection: apsw.Connection | None) -> bool:
    """True if an error says that the disk takes no more; a quota or a limit of the process comes as an I/O error."""
    if isinstance(error, apsw.FullError):
        return True
    is_of_the_system = isinstance(error, apsw.IOError | apsw.CantOpenError)
    return is_of_the_system and connection is not None and connection.system_errno in NO_SPACE
