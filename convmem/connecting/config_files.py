"""The door to configurations of other programs: read whole, kept beside themselves, replaced in one step.

The idea: such a file belongs to a person and to a program that may be writing it right now. So a copy of it is kept
before the first change, what takes its place has its mode, owner and attributes, a link to it stays a link, and if the
bytes that were read are no longer the bytes that are there nothing is replaced.

Rejected: files.appearing. What it writes is for the owner alone, as ours is; here the file's own rights count.
"""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from convmem.files import DIRECTORY_MODE, FILE_MODE, RealFiles, remove
from convmem.limits import CONFIG_ATTEMPTS_MAX, CONFIG_BYTES_MAX, CONFIG_COPIES_A_SECOND_MAX

BACKUP_MARK = ".convmem-backup-"
PART = ".{}.convmem-{}.part"


class Changed(Exception):
    """Somebody else has written the file between our reading and our replacing it."""


def read(path: Path) -> bytes | None:
    """The bytes of a file, None if there is none; links are followed. OSError, also for what is no regular file."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(descriptor, "rb") as file:
        data = file.read(CONFIG_BYTES_MAX + 1)
    if len(data) > CONFIG_BYTES_MAX:
        raise OSError(errno.EFBIG, f"larger than {CONFIG_BYTES_MAX} bytes", str(path))
    return data


def is_private(path: Path) -> bool:
    """True if nobody but the owner can read the file. OSError if it is not there."""
    return not os.stat(path).st_mode & 0o077


def change(path: Path, edit: Callable[[bytes], bytes], time: str) -> tuple[bool, Path | None]:
    """Replace a file by what `edit` makes of it (of nothing, if there is none): whether that is something else, and the
    copy that was kept. Begins again if somebody else was quicker; Changed if that goes on. OSError, and what `edit`
    raises.
    """
    for _ in range(CONFIG_ATTEMPTS_MAX):
        before = read(path)
        after = edit(before or b"")
        if after == (before or b""):
            return False, None
        with suppress(Changed):
            return True, replace(path, before, after, time)
    raise Changed


def replace(path: Path, before: bytes | None, after: bytes, time: str) -> Path | None:
    """Put `after` in the place of `before` (None: of no file) and return the copy that was kept of that, if any.

    `time` marks the copy. Raises Changed if something else is there by now, OSError as the disk says it; then what was
    there still is, and nothing stands beside it.
    """
    target = Path(os.path.realpath(path))
    if before is None:
        target.parent.mkdir(mode=DIRECTORY_MODE, parents=True, exist_ok=True)
    _sweep_parts(target)
    part = target.with_name(PART.format(target.name, os.getpid()))
    backup = None
    with ExitStack() as undone:
        if before is not None:
            backup = _kept(target, before, time)
            undone.callback(remove, backup)
        _write(part, after, None if before is None else target)
        undone.callback(remove, part)
        if read(target) != before:
            raise Changed
        os.replace(part, target)
        undone.pop_all()
    with suppress(OSError):  # It is replaced by now, and whole under either name.
        RealFiles(target.parent).sync_directory()
    return backup


def _sweep_parts(target: Path) -> None:
    """Remove what killed processes left beside the file: parts whose maker is gone, or was this process's namesake."""
    before, after = PART.split("{}")[1:]
    for name in os.listdir(target.parent):
        if name.startswith(f".{target.name}{before}") and name.endswith(after):
            pid = name.removeprefix(f".{target.name}{before}").removesuffix(after)
            if pid.isdecimal() and (int(pid) == os.getpid() or not _is_alive(int(pid))):
                remove(target.parent / name)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _kept(target: Path, before: bytes, time: str) -> Path:
    for number in range(CONFIG_COPIES_A_SECOND_MAX):
        backup = target.with_name(target.name + BACKUP_MARK + time + (f"-{number}" if number else ""))
        with suppress(FileExistsError):
            _write(backup, before, target)
            return backup
    raise OSError(errno.EEXIST, "too many copies bear this time", str(target))


def _write(path: Path, data: bytes, like: Path | None) -> None:
    """A new file, on the disk when this returns, with the rights and attributes of another. FileExistsError."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, FILE_MODE), "wb") as file, ExitStack() as undone:
        undone.callback(remove, path)
        if like is not None:
            _liken(file.fileno(), path, like)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
        undone.pop_all()


def _liken(descriptor: int, path: Path, like: Path) -> None:
    """Give an empty file the owner, group, mode and attributes of another. OSError if that cannot be."""
    wanted, there = os.stat(like), os.fstat(descriptor)
    if (wanted.st_uid, wanted.st_gid) != (there.st_uid, there.st_gid):
        os.fchown(descriptor, wanted.st_uid, wanted.st_gid)
    # Its times too, of which writing sets the one that counts.
    shutil.copystat(like, path)
