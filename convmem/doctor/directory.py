"""The data directory itself: whether it is there, whose it is, who else may look in, what it lies on, and what room is
left.
"""

import os
import re
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from shlex import quote

from convmem import files
from convmem.doctor.findings import Finding
from convmem.doctor.here import Here
from convmem.doctor.local_findings import found
from convmem.limits import DOCTOR_SPACE_BYTES_MIN, FRAME_BYTES_MAX, MIB
from convmem.store import log

FOR_OTHERS = 0o077
MOUNTS = Path("/proc/self/mountinfo")
NETWORK_TYPES = re.compile(
    r"nfs\d?|cifs|smb\w*|ceph|afs|9p|lustre|glusterfs|fuse\.\w*(?:fs|mount|drive)|vboxsf|prl_fs|davfs"
)
PASSING_TYPES = frozenset({"tmpfs", "ramfs", "overlay", "aufs"})
INDEXES = re.compile(r"(?:index|search)-\d+\.db")


def directory(here: Here) -> Iterator[Finding]:
    """Whether this user can use the directory and what is in it, and whether others can."""
    path, uid = here.data_dir, os.geteuid()
    shown = quote(str(path))
    if not os.path.lexists(path):
        above = _above(path)
        if os.access(above, os.W_OK | os.X_OK):
            yield found("directory-missing", f"{path} is not there", f"convmem serve --data-dir {shown}")
        else:
            seen = f"{path} is not there, and uid {uid} cannot make it in {above}"
            yield found("directory-unusable", seen, f"install -d -m 700 -o {uid} {shown}")
        return
    if not path.is_dir():
        yield found("directory-unusable", f"{path} is no directory", "convmem serve --data-dir DIRECTORY")
        return
    status = path.stat()
    mode = f"{stat.S_IMODE(status.st_mode):04o}"
    seen = f"{path}, uid {status.st_uid}, mode {mode}"
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        if here.space(path).is_read_only:
            return  # The next check says so.
        yield found("directory-unusable", f"{seen}; this is uid {uid}", f"chown -R {uid} {shown} && chmod 700 {shown}")
        return
    foreign = [name for name in sorted(os.listdir(path)) if not _is_usable(path / name)]
    if foreign:
        names = ", ".join(foreign[:5]) + (f" and {len(foreign) - 5} more" if len(foreign) > 5 else "")
        yield found("directory-files", f"uid {uid} cannot use {names}", f"chown -R {uid} {shown}")
    open_ones = [name for name in sorted(os.listdir(path)) if _is_open(path / name)]
    if status.st_mode & FOR_OTHERS:
        yield found("directory-open", seen, f"chmod 700 {shown}")
    elif open_ones and not foreign:
        yield found("directory-ok", f"{seen}; inside, modes are wider, which the directory's own keeps from others")
    elif not foreign:
        yield found("directory-ok", seen)


def _above(path: Path) -> Path:
    return next(parent for parent in path.absolute().parents if parent.exists())


def _is_usable(path: Path) -> bool:
    """Sockets, links that lead nowhere and what has gone meanwhile are no matter here."""
    with suppress(OSError):
        status = path.stat()
        if stat.S_ISREG(status.st_mode):
            return os.access(path, os.R_OK | os.W_OK)
        return not stat.S_ISDIR(status.st_mode) or os.access(path, os.R_OK | os.W_OK | os.X_OK)
    return True


def _is_open(path: Path) -> bool:
    with suppress(OSError):
        return bool(path.lstat().st_mode & FOR_OTHERS) and path.is_file()
    return False


def disk(here: Here) -> Iterator[Finding]:
    """What the directory lies on, and whether there is room for the next writes and for a compaction."""
    path = here.data_dir
    space, kind = here.space(path), file_system_of(path)
    on = f"on {kind}" if kind else "on its file system"
    if space.is_read_only:
        yield found("disk-read-only", f"{path} lies {on}, which is read-only", f"mount -o remount,rw {_mount_of(path)}")
        return
    if NETWORK_TYPES.fullmatch(kind):
        yield found(
            "disk-network", f"{path} lies {on}", "convmem serve --data-dir DIRECTORY  # on a disk of this machine"
        )
    elif kind in PASSING_TYPES:
        yield found("disk-passing", f"{path} lies {on}", "convmem serve --data-dir DIRECTORY  # on a disk or a volume")
    sizes = {name: _size(path / name) for name in os.listdir(path) if name == log.NAME or INDEXES.fullmatch(name)}
    needed = sum(sizes.values()) + DOCTOR_SPACE_BYTES_MIN
    seen = f"{space.free_bytes // MIB:,} MiB free; log and indexes take {sum(sizes.values()) // MIB:,} MiB"
    if space.free_bytes < FRAME_BYTES_MAX or not space.has_names:
        free = f"{space.free_bytes:,} bytes" if space.has_names else "no more names"
        yield found(
            "disk-full", f"{free} free {on}", f"du -xh {quote(_mount_of(path))} | sort -h  # and free some space"
        )
    elif space.free_bytes < needed:
        change = f"du -xh {quote(_mount_of(path))} | sort -h  # and free {(needed - space.free_bytes) // MIB + 1} MiB"
        yield found("disk-low", seen, change)
    else:
        yield found("disk-ok", f"{seen}{', ' + on if kind else ''}")


def _size(path: Path) -> int:
    with suppress(OSError):
        return path.stat().st_size
    return 0


def file_system_of(path: Path) -> str:
    """The type of the file system that a path lies on; empty where the system does not tell."""
    return _mount(path)[1]


def _mount_of(path: Path) -> str:
    return _mount(path)[0] or str(path)


def _mount(path: Path) -> tuple[str, str]:
    """Where the file system of a path is mounted, and its type (man 5 proc_pid_mountinfo); the last of those that are
    mounted over one another.
    """
    try:
        text = (files.read_text(MOUNTS, bytes_max=16 * MIB) or b"").decode(errors="replace")
    except OSError:
        return "", ""
    best, real = ("", ""), os.path.realpath(path)
    for line in text.splitlines():
        before, _, behind = line.partition(" - ")
        words = before.split()
        if len(words) < 5 or not behind:
            continue
        place = re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), words[4])
        if (real == place or real.startswith(place.rstrip("/") + "/")) and len(place) >= len(best[0]):
            best = place, behind.split()[0]
    return best
