"""The only door to the disk: every file that convmem itself opens, writes, syncs, renames or locks goes through here.

A test can stand another disk here, and what is written is counted where it happens; SQLite's share is counted in
store/sqlite.py. Writes are positioned, never appended: bytes of a failed write can not get between two good ones.
"""

import errno
import fcntl
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

DIRECTORY_MODE, FILE_MODE = 0o700, 0o600
_MASK = threading.Lock()  # of the whole process: who comes second would else find it put back
NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass
class Counters:
    """What went to the disk since start: write calls, bytes handed over, flushes (fdatasync, directory sync)."""

    writes: int = 0
    bytes: int = 0
    flushes: int = 0


class File(Protocol):
    """An open file. Sizes and offsets are bytes; every method may raise OSError."""

    def size(self) -> int: ...
    def read(self, offset: int, size: int) -> bytes:
        """Return up to `size` bytes from `offset`; fewer only at the end of the file."""

    def write(self, offset: int, data: bytes) -> None:
        """Write all of `data` at `offset`, or raise; after an error any part of it may be there."""

    def truncate(self, size: int) -> None: ...
    def sync(self) -> None:
        """Return when all that was written is on the medium."""

    def is_linked(self) -> bool:
        """False once the file has no name any more: what is written to it is lost with the process."""

    def close(self) -> None: ...


class Files(Protocol):
    """One directory and the files in it, by name."""

    counters: Counters

    def open(self, name: str) -> File:
        """Open for reading and writing; made (mode 0600) and its name made durable if it is missing."""

    def open_to_read(self, name: str) -> File:
        """Open an existing file for reading only."""

    def stage(self, name: str) -> File:
        """Open an empty file (mode 0600) whose name need not survive: rename() gives it one that does."""

    def rename(self, old: str, new: str) -> None:
        """Give a file another name, in the place of whatever bears it; durable only after sync_directory()."""

    def sync_directory(self) -> None:
        """Return when the names are on the medium."""

    def exists(self, name: str) -> bool: ...
    def size(self, name: str) -> int:
        """Size in bytes, 0 if there is no such file."""

    def names(self) -> list[str]: ...
    def remove(self, name: str) -> None:
        """Remove the file if it is there."""


class RealFile:
    """A file on a real disk."""

    def __init__(self, path: Path, counters: Counters, *, writable: bool = True) -> None:
        flags = os.O_RDWR | os.O_CREAT if writable else os.O_RDONLY
        self._descriptor = os.open(path, flags | os.O_CLOEXEC | os.O_NONBLOCK, FILE_MODE)  # No pipe is waited for.
        self._counters = counters

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        parts: list[bytes] = []
        while size > 0 and (part := os.pread(self._descriptor, size, offset)):
            parts.append(part)
            offset, size = offset + len(part), size - len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, offset: int, data: bytes) -> None:
        view = memoryview(data)
        while view:
            written = os.pwrite(self._descriptor, view, offset)
            self._counters.writes += 1
            self._counters.bytes += written
            offset, view = offset + written, view[written:]

    def truncate(self, size: int) -> None:
        os.ftruncate(self._descriptor, size)

    def sync(self) -> None:
        self._counters.flushes += 1
        if sys.platform == "darwin":
            # fsync on macOS stops at the drive's cache; F_FULLFSYNC does not (man 2 fsync).
            fcntl.fcntl(self._descriptor, fcntl.F_FULLFSYNC)
        else:
            os.fdatasync(self._descriptor)

    def is_linked(self) -> bool:
        return os.fstat(self._descriptor).st_nlink > 0

    def close(self) -> None:
        os.close(self._descriptor)


@dataclass
class RealFiles:
    """A directory on a real disk. Raises OSError where it cannot be made or entered."""

    root: Path
    counters: Counters = field(default_factory=Counters)

    def prepare(self) -> None:
        """Make the directory if it is missing, close it to others (0700) if ours, and prove that a file fits in."""
        self.root.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
        if (found := self.root.stat()).st_uid == os.geteuid() and found.st_mode & 0o077:
            self.root.chmod(DIRECTORY_MODE)
        probe = self.root / f".probe-{os.getpid()}"
        descriptor = os.open(probe, os.O_RDWR | os.O_CREAT, FILE_MODE)
        os.close(descriptor)
        os.unlink(probe)

    def path(self, name: str) -> Path:
        """The path of a file of this directory, for SQLite and for sockets."""
        return self.root / name

    def open(self, name: str) -> RealFile:
        is_new = not self.exists(name)
        file = RealFile(self.root / name, self.counters)
        if is_new:
            self.sync_directory()
        return file

    def stage(self, name: str) -> RealFile:
        file = RealFile(self.root / name, self.counters)
        file.truncate(0)
        return file

    def rename(self, old: str, new: str) -> None:
        os.rename(self.root / old, self.root / new)

    def open_to_read(self, name: str) -> RealFile:
        return RealFile(self.root / name, self.counters, writable=False)

    def exists(self, name: str) -> bool:
        return os.path.lexists(self.root / name)

    def size(self, name: str) -> int:
        try:
            return os.stat(self.root / name).st_size
        except FileNotFoundError:
            return 0

    def names(self) -> list[str]:
        return sorted(os.listdir(self.root))

    def remove(self, name: str) -> None:
        remove(self.root / name)

    def sync_directory(self) -> None:
        descriptor = os.open(self.root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            self.counters.flushes += 1
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class HeldLock:
    """A kernel lock on a file, with a text in it for whoever finds it taken. Freed by close or the process's end."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def tell(self, text: str) -> None:
        """Replace the text that others read while the lock is held. It is information, never a condition."""
        os.ftruncate(self._descriptor, 0)
        os.pwrite(self._descriptor, text.encode(), 0)

    def close(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.close(self._descriptor)


def lock(path: Path) -> HeldLock | None:
    """Take the exclusive lock on `path` (flock), None if another process holds it. A stale file never blocks."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return HeldLock(descriptor)


def read_text(path: Path, *, bytes_max: int) -> bytes | None:
    """Return the first `bytes_max` bytes of a small file (settings, token, lock text); None if it is not there."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    with os.fdopen(descriptor, "rb") as file:
        return file.read(bytes_max)


@contextmanager
def private_files() -> Iterator[None]:
    """What SQLite and sockets make inside this block is for the owner alone (0600, 0700); one thread at a time."""
    with _MASK, ExitStack() as undone:
        undone.callback(os.umask, os.umask(0o077))
        yield


def make_private(path: Path) -> None:
    """Let only the owner read and write (0600); a socket is made with more than that whatever the mask says."""
    os.chmod(path, FILE_MODE)


def boot_id() -> str:
    """A text that changes with each start of the operating system; empty where none is to be had."""
    return (read_text(Path("/proc/sys/kernel/random/boot_id"), bytes_max=64) or b"").decode().strip()


@contextmanager
def appearing(path: Path, *, is_alone: bool = True) -> Iterator[Callable[[bytes], object]]:
    """A file for the owner alone that has its name only once all that was written is on the disk; else there is none.

    What bears the name already stays until then. A device or a pipe is simply written to. OSError as the disk says it,
    also at the very end. If not alone, whoever writes many sweeps before and syncs the directory after.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        with open(target, "wb") as stream:
            yield stream.write
        return
    if is_alone:
        sweep_parts(target.parent)
    part = target.with_name(f".convmem-{os.getpid()}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        with os.fdopen(os.open(part, flags, FILE_MODE), "wb") as file:
            with suppress(OSError):  # A file system without locks: nobody sweeps there.
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    finally:
        remove(part)
    if is_alone:
        RealFiles(target.parent).sync_directory()


def sweep_parts(directory: Path) -> None:
    """Remove the parts that killed processes left: those that nobody holds the lock of, in whatever container."""
    for name in os.listdir(directory):
        if name.startswith(".convmem-") and name.endswith(".part"):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with suppress(OSError), os.fdopen(os.open(directory / name, flags), "rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                os.unlink(directory / name)


def regular(path: Path) -> RealFile:
    """Open a file of somebody else's for reading; OSError if it is no regular file."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return RealFile(path, Counters(), writable=False)


def flush(path: Path) -> None:
    """Return when a file that others wrote is on the medium; not counted here."""
    file = RealFile(path, Counters())
    file.sync()
    file.close()


def remove(path: Path) -> None:
    """Remove a file or socket if it is there."""
    with suppress(FileNotFoundError):
        os.unlink(path)
