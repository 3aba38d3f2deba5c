"""Writing a table file anew without what is dead in it (VACUUM), so that what was purged is in no byte of it.

SQLite builds the new content in a temporary file and copies it back over the WAL: two more times the size of what is
left, on the disk where the file is, and that much must be free before it begins, since everything else that is stored
there needs room too. The temporary file has no name, so nothing of it is left behind by a process that dies.

SQLite knows one place for temporary files, for the whole process: it is set to the table's directory while a file is
written anew, one at a time.

Whoever reads the file at its end is waited for, as long as any question may take.

Rejected: in memory, as all else is sorted here (a file of gigabytes would have to fit), in the system's place for
temporary files (a container's may be read-only, and words of the user would stand on another disk), and a copy that
takes the file's name (who has the file open would go on with the old one).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import apsw

from convmem.errors import ConvmemError, RetryError, Stopping, StorageFault, StorageFull
from convmem.limits import BUSY_RETRY_MS, QUERY_MS_MAX, STORAGE_FULL_RETRY_MS
from convmem.store.table_sqlite import OF_THE_FILE, connect_to_table, leave, refusal

COPIES = 2
# Whether a stop has come is looked at so often that large rows do not hold it up.
STEPS_BETWEEN_LOOKS = 100
_ONE_AT_A_TIME = threading.Lock()


def rewrite(
    path: Path, begin: Callable[[apsw.Connection], Callable[[], object]], *, is_stopped: Callable[[], bool]
) -> None:
    """Write a file anew and its WAL away, then call what `begin(connection)` has returned before, which may write down
    what this has done. StorageFault, Busy, StorageFull, Stopping: the file is as it was.

    The pages that held what is dead are written over or cut off; what it said is in no byte of either file then.
    """
    connection: apsw.Connection | None = None
    try:
        connection = connect_to_table(path)
        connection.set_busy_timeout(QUERY_MS_MAX)
        connection.set_progress_handler(is_stopped, STEPS_BETWEEN_LOOKS)
        _need_room(connection, path)
        finish = begin(connection)
        with _ONE_AT_A_TIME, _temporary_files_in(connection, path.parent):
            connection.execute("VACUUM")
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
        finish()
        connection.close()
    except (apsw.InterruptError, apsw.SQLError, *OF_THE_FILE) as error:
        told = _told(error, connection)
        if connection is not None:
            if isinstance(told, RetryError):
                _give_room_back(connection)
            leave(connection)
        raise told from error
    except StorageFull:
        assert connection is not None
        leave(connection)
        raise


def _told(error: Exception, connection: apsw.Connection | None) -> ConvmemError:
    if isinstance(error, apsw.InterruptError):
        return Stopping("the daemon is stopping; the file was not written anew", retry_after_ms=BUSY_RETRY_MS)
    if isinstance(error, apsw.SQLError):
        return StorageFault("the table's file holds something else than a table")
    return refusal(error, connection)


def _need_room(connection: apsw.Connection, path: Path) -> None:
    pages, dead, page_bytes = (connection.pragma(name) for name in ("page_count", "freelist_count", "page_size"))
    needed = COPIES * (int(pages) - int(dead)) * int(page_bytes)
    disk = os.statvfs(path.parent)
    if disk.f_bavail * disk.f_frsize < needed:
        raise StorageFull(
            f"the table's file cannot be written anew: {needed} bytes must be free beside it",
            retry_after_ms=STORAGE_FULL_RETRY_MS,
        )


def _give_room_back(connection: apsw.Connection) -> None:
    """Cut off what was written into the WAL for nothing: on a full disk nobody else could store anything."""
    connection.set_busy_timeout(0)
    with suppress(*OF_THE_FILE):
        connection.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)


@contextmanager
def _temporary_files_in(connection: apsw.Connection, directory: Path) -> Iterator[None]:
    place = os.fspath(directory).replace("'", "''")
    connection.execute("PRAGMA temp_store = FILE")
    connection.execute(f"PRAGMA temp_store_directory = '{place}'")
    try:
        yield
    finally:
        connection.execute("PRAGMA temp_store_directory = ''")
