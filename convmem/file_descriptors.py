"""The door to the disk for a process that has no time: bare paths and descriptors, and next to nothing to import.

What the client for hooks keeps on disk goes through here, as everything else goes through files.py. All of it is for
the owner alone (0600, 0700), and no link is followed in the last part of a path. A write is positioned and whole: what
a full disk took of it is cut off again.

Rejected: files.py for this too. Its data classes and paths alone would take a third of the time that a hook has.
"""

import errno
import fcntl
import os
import stat
from collections.abc import Callable
from contextlib import suppress

DIRECTORY_MODE, FILE_MODE, FOR_OTHERS = 0o700, 0o600, 0o077
PIECE_BYTES = 256 * 1024
# Whoever waits for a lock asks at short intervals at first, then at longer ones.
LOCK_PAUSE_MS, LOCK_EAGER_MS, LOCK_PATIENT_PAUSE_MS = 1, 20, 10
# Where a system does not say which descriptors are open, so many are closed.
INHERITED_MAX = 1024


def make_directory(path: str) -> None:
    """Make a directory and those above it that are missing, for the owner alone; one of ours becomes so. OSError."""
    try:
        found = os.stat(path)
    except FileNotFoundError:
        _make_missing(path)
        return
    if found.st_mode & FOR_OTHERS and found.st_uid == os.geteuid():
        os.chmod(path, DIRECTORY_MODE)


def _make_missing(path: str) -> None:
    above = os.path.dirname(path)
    if not os.path.isdir(above):
        _make_missing(above)
    with suppress(FileExistsError):
        os.mkdir(path, DIRECTORY_MODE)


def open_file(path: str) -> int:
    """Open a file for reading and writing; made if it is missing. OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, FILE_MODE)
    if os.fstat(descriptor).st_mode & FOR_OTHERS:
        os.fchmod(descriptor, FILE_MODE)
    return descriptor


def close(descriptor: int) -> None:
    """Close a descriptor, and free the lock that it holds."""
    os.close(descriptor)


def size_and_number(descriptor: int) -> tuple[int, int]:
    """How many bytes an open file has, and the number that tells it from every other one that is there."""
    found = os.fstat(descriptor)
    return found.st_size, found.st_ino


def is_linked(descriptor: int) -> bool:
    """False once an open file has no name any more."""
    return os.fstat(descriptor).st_nlink > 0


def size(path: str) -> int:
    """How many bytes a file has; 0 if there is none, it is no file or it cannot be looked at."""
    try:
        found = os.stat(path)
    except OSError:
        return 0
    return found.st_size if stat.S_ISREG(found.st_mode) else 0


def is_there(path: str) -> bool:
    """Whether something has this path. OSError if that cannot be looked at, or a part of the path is no directory."""
    try:
        os.stat(path)
    except FileNotFoundError:
        return False
    return True


def read(descriptor: int, offset: int, length: int) -> bytes:
    """Up to `length` bytes from `offset`; fewer only at the end of the file."""
    parts = []
    while length > 0 and (part := os.pread(descriptor, length, offset)):
        parts.append(part)
        offset, length = offset + len(part), length - len(part)
    return b"".join(parts)


def read_small(path: str, bytes_max: int) -> bytes | None:
    """The first `bytes_max` bytes of a small file; None if there is none. OSError if it cannot be read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        return read(descriptor, 0, bytes_max)
    finally:
        os.close(descriptor)


def write_at_end(descriptor: int, end: int, data: bytes) -> None:
    """Put all of `data` behind the `end` bytes of a file with one write, or leave the file as it is and raise."""
    try:
        if os.pwrite(descriptor, data, end) != len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    except OSError:
        os.ftruncate(descriptor, end)
        raise


def overwrite(descriptor: int, offset: int, data: bytes) -> None:
    """Put a few bytes over those that are there. OSError."""
    os.pwrite(descriptor, data, offset)


def truncate(descriptor: int) -> None:
    """Let an open file hold nothing."""
    os.ftruncate(descriptor, 0)


def replace(path: str, data: bytes) -> None:
    """Put a small file in the place of another; one or the other is there at any moment. OSError, and the old one."""
    _replace(path, lambda descriptor: write_at_end(descriptor, 0, data))


def keep_from(path: str, descriptor: int, offset: int) -> None:
    """Put what an open file holds from `offset` on in its place; one or the other is there at any moment. OSError."""

    def copy(target: int) -> None:
        source, written = offset, 0
        while piece := os.pread(descriptor, PIECE_BYTES, source):
            write_at_end(target, written, piece)
            source, written = source + len(piece), written + len(piece)

    _replace(path, copy)


def _replace(path: str, fill: Callable[[int], None]) -> None:
    """Only whoever holds the lock of these files may come here: there is one name for what is not finished."""
    part = path + ".part"
    with suppress(FileNotFoundError):
        os.unlink(part)
    descriptor = open_file(part)
    try:
        fill(descriptor)
        os.rename(part, path)
    except OSError:
        with suppress(OSError):
            os.unlink(part)
        raise
    finally:
        os.close(descriptor)


def lock(descriptor: int) -> bool:
    """Take the exclusive lock of an open file; False if somebody else has it. A process that is forked shares it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def lock_within(
    descriptor: int, wait_ms: float, monotonic_ms: Callable[[], float], sleep_ms: Callable[[float], None]
) -> bool:
    """The same, asked for again and again for so long."""
    until_ms = monotonic_ms() + wait_ms
    # Counted too: rests may be longer than they should be, and the clock of a test stands still.
    rested_ms = 0
    while not lock(descriptor):
        if rested_ms >= wait_ms or monotonic_ms() >= until_ms:
            return False
        pause_ms = LOCK_PAUSE_MS if rested_ms < LOCK_EAGER_MS else LOCK_PATIENT_PAUSE_MS
        sleep_ms(pause_ms)
        rested_ms += pause_ms
    return True


def let_go_of_everything(kept: int | None) -> None:
    """Put /dev/null in the place of stdin, stdout and stderr, and close all that was inherited but `kept`: whoever
    waits for the end of a pipe must not wait for this process.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in range(3):
        os.dup2(nothing, number)
    try:
        numbers = [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        numbers = list(range(INHERITED_MAX))
    for number in numbers:
        if number > 2 and number != kept:
            with suppress(OSError):
                os.close(number)
