"""The door to directories that belong to their user: tables, their schemas, and the copies of both.

The idea: whoever owns a directory may have put anything there, also links that lead out of it. So nothing is read or
written through a link in the last part of a path, and what stands in a place is asked of the place itself. What is
written appears whole or not at all, and is on the disk when a function returns.

Rejected: RealFiles for this too. A data directory is ours alone, and nobody else makes names in it.
"""

import errno
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from convmem import files
from convmem.files import DIRECTORY_MODE

PIECE_BYTES = 256 * 1024


def real(path: Path) -> Path:
    """The path with all links followed; what is not there yet follows what is."""
    return Path(os.path.realpath(path))


def is_directory(path: Path) -> bool:
    """True if a directory stands there, and no link to one."""
    return _is(path, stat.S_ISDIR)


def is_file(path: Path) -> bool:
    """True if a regular file stands there, and no link to one."""
    return _is(path, stat.S_ISREG)


def is_anything(path: Path) -> bool:
    """True if the name is taken, also by a link that leads nowhere."""
    return os.path.lexists(path)


def _is(path: Path, kind: Callable[[int], bool]) -> bool:
    try:
        return kind(os.lstat(path).st_mode)
    except OSError:
        return False


def names(directory: Path) -> list[str]:
    """The names in a directory, sorted; none if it is not there. OSError if it cannot be looked into."""
    try:
        return sorted(os.listdir(directory))
    except FileNotFoundError:
        return []


def size(path: Path) -> int:
    """How many bytes a file has; 0 if there is none."""
    try:
        return os.lstat(path).st_size
    except OSError:
        return 0


def make(directory: Path) -> None:
    """Make a directory and those above it that are missing, for the owner alone, and see that they stay. OSError."""
    missing = [place for place in (directory, *directory.parents) if not place.is_dir()]
    for place in reversed(missing):
        with suppress(FileExistsError):
            os.mkdir(place, DIRECTORY_MODE)
        flush_directory(place.parent)


def read(path: Path, bytes_max: int) -> bytes:
    """The first `bytes_max` bytes of a regular file. OSError if it is a link, something else or cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return file.read(bytes_max)


def write(path: Path, data: bytes) -> None:
    """Let a file hold these bytes, in the place of whatever file was there; of a link OSError."""
    _write(path, data, is_alone=True)


@contextmanager
def filling(directory: Path) -> Iterator[Callable[[str, bytes], None]]:
    """Write many files of a directory, by name, each as `write` does it; the names stay once all are written. OSError.

    Each by itself would look through the directory for what killed processes left, and see to its name.
    """
    files.sweep_parts(directory)
    try:
        yield lambda name, data: _write(directory / name, data, is_alone=False)
    finally:
        flush_directory(directory)


def _write(path: Path, data: bytes, *, is_alone: bool) -> None:
    if path.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    with files.appearing(path, is_alone=is_alone) as put:
        put(data)


def remove(path: Path) -> None:
    """Remove a file or a link if it is there, and see that it stays away. OSError."""
    files.remove(path)
    flush_directory(path.parent)


def remove_empty(directory: Path) -> None:
    """Remove a directory if nothing is in it."""
    with suppress(OSError):
        os.rmdir(directory)


def move(old: Path, new: Path) -> None:
    """Give a file another name in the same file system, and see that it stays. OSError."""
    os.replace(old, new)
    for directory in {old.parent, new.parent}:
        flush_directory(directory)


def pieces(path: Path) -> Iterator[bytes]:
    """All bytes of a file, piece by piece. OSError if it is a link or cannot be read."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        while piece := file.read(PIECE_BYTES):
            yield piece


def copy(source: Path, target: Path) -> None:
    """Copy a regular file; the copy appears whole. OSError."""
    with files.appearing(target) as put:
        for piece in pieces(source):
            put(piece)


def flush_directory(directory: Path) -> None:
    """Return when the names in a directory are on the medium. OSError."""
    files.RealFiles(directory).sync_directory()
