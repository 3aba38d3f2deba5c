"""A copy of a table file as it is at one moment, made while it may be written to.

SQLite's own online backup reads it page by page: each step holds the file for a moment, and what is committed meanwhile
by another connection begins the copy anew, so it goes on in larger steps then. The copy is looked through, flushed and
only then given its name; it is one file, without a WAL, that any tool opens. What a killed process leaves has another
name and is swept by the next copy into the same directory.

Rejected: copying the bytes (a checkpoint half-way makes a file that never was), and VACUUM INTO (it holds a reader of
the file for as long as it takes, so the WAL grows without end under load).
"""

import os
from collections.abc import Callable
from pathlib import Path

import apsw

from convmem import files, folders
from convmem.errors import Conflict, DiskFault, Stopping, StorageFault
from convmem.limits import BUSY_RETRY_MS, COPY_PAGES_AT_ONCE, COPY_STARTS_MAX
from convmem.store.sqlite import DAMAGE
from convmem.store.table_sqlite import OF_THE_FILE, connect_to_copy, connect_to_read_table, leave, refusal

PART, ENDING = ".convmem-copy-", ".part"


def copy(source: Path, target: Path, *, is_stopped: Callable[[], bool]) -> int:
    """Copy a table file into a new file and return its bytes. Waits for the disk.

    Conflict if something has that name; StorageFault, Busy, StorageFull because of either file, DiskFault, Stopping:
    nothing has the name then.
    """
    if folders.is_anything(target):
        raise Conflict("there is a file of this name already", field="target")
    try:
        sweep(target.parent)
        part = target.with_name(f"{PART}{os.getpid()}-{target.name}{ENDING}")
        try:
            _copy_pages(source, part, is_stopped)
            files.flush(part)
            folders.move(part, target)
        finally:
            _remove(part)
    except OSError as error:
        raise DiskFault(f"the disk refused it ({error.strerror or 'without a reason'})", path=target.name) from error
    return folders.size(target)


def sweep(directory: Path) -> None:
    """Remove what processes that are gone have left of their copies. OSError."""
    for name in folders.names(directory):
        if name.startswith(PART) and not _is_alive(name.removeprefix(PART).split("-", 1)[0]):
            folders.remove(directory / name)


def _is_alive(pid: str) -> bool:
    if not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        pass
    return True


def _copy_pages(source: Path, part: Path, is_stopped: Callable[[], bool]) -> None:
    _remove(part)
    try:
        reading = connect_to_read_table(source)
    except OF_THE_FILE as error:
        raise refusal(error, None) from error
    try:
        writing = connect_to_copy(part)
        try:
            _step_through(writing, reading, is_stopped)
            _look_through(writing)
        except OF_THE_FILE as error:
            raise refusal(error, writing) from error
        finally:
            writing.close()
    finally:
        leave(reading)


def _step_through(writing: apsw.Connection, reading: apsw.Connection, is_stopped: Callable[[], bool]) -> None:
    """All pages, some at a time; all at once after it had to begin anew too often."""
    pages, starts, left = COPY_PAGES_AT_ONCE, 0, None
    with writing.backup("main", reading, "main") as backup:
        while not backup.done:
            if is_stopped():
                raise Stopping("the daemon is stopping; nothing was copied", retry_after_ms=BUSY_RETRY_MS)
            backup.step(pages)
            if left is not None and backup.remaining > left:
                starts += 1
            left = backup.remaining
            if starts > COPY_STARTS_MAX:
                pages = -1
    # The copy bears the journal of its source; it shall be one file.
    writing.pragma("journal_mode", "delete")


def _look_through(writing: apsw.Connection) -> None:
    try:
        found = writing.execute("PRAGMA quick_check(1)").fetchall()
    except DAMAGE:
        found = []
    if found != [("ok",)]:
        raise StorageFault("the table's file is damaged")


def _remove(part: Path) -> None:
    for suffix in ("", "-wal", "-shm", "-journal"):
        files.remove(part.with_name(part.name + suffix))
