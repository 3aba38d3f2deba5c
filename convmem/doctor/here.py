"""What is known of a data directory on this machine while it is looked at: settings, who holds it, what they say.

Nothing is taken to find out whether it is free: a lock that the doctor held for a moment would refuse the daemon that
starts in that moment. The kernel says who holds which lock; where it does not, whoever holds the store answers on its
local socket.
"""

import os
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from convmem import files, strict_json
from convmem.clock import Clock
from convmem.config import Settings
from convmem.doctor.wire import Answer, Exchanger, Line, NoAnswer
from convmem.holding import LOCK
from convmem.limits import DOCTOR_STEP_MS_MAX, LOCK_TEXT_BYTES_MAX, MIB
from convmem.store.sqlite import State

LOCKS = Path("/proc/locks")


class Space(NamedTuple):
    """A file system: free bytes for this user, free names, and whether nothing may be written."""

    free_bytes: int
    has_names: bool
    is_read_only: bool


def space_of(path: Path) -> Space:
    """What the system says. OSError."""
    found = os.statvfs(path)
    has_names = found.f_favail > 0 or found.f_files == 0
    return Space(found.f_bavail * found.f_frsize, has_names, bool(found.f_flag & os.ST_RDONLY))


class Holder(NamedTuple):
    """What store.lock says of whoever holds it, or has held it and was killed."""

    pid: int | None = None
    url: str = ""
    socket: str = ""


@dataclass
class Here:
    """One look at a data directory."""

    settings: Settings
    environment: Mapping[str, str]
    clock: Clock
    # Variables that look like settings and are none.
    unknown: tuple[str, ...] = ()
    step_ms_max: float = DOCTOR_STEP_MS_MAX
    space: Callable[[Path], Space] = space_of
    holder: Holder = field(default_factory=Holder)
    # The answer of whoever holds the store, or why there is none; `pid` if the kernel names who does.
    answered: Answer | NoAnswer | OSError | None = None
    pid: int | None = None
    health: Mapping[str, Any] = field(default_factory=dict)
    state: State | None = None

    @property
    def data_dir(self) -> Path:
        return self.settings.data_dir

    @property
    def socket(self) -> str:
        """The path of the local socket; empty if there is none."""
        return self.holder.socket or (str(self.settings.socket) if self.settings.socket else "")

    @property
    def is_held(self) -> bool:
        """True if somebody holds the store."""
        return self.pid is not None or isinstance(self.answered, Answer)

    @property
    def exchanger(self) -> Exchanger:
        """Asks whoever holds the store, over its local socket."""
        return Exchanger(Line(socket.AF_UNIX, self.socket), self.clock, self.step_ms_max)

    def look(self) -> None:
        """Find out who holds the store, and ask how it is."""
        text = b""
        with suppress(OSError):
            text = files.read_text(self.data_dir / LOCK, bytes_max=LOCK_TEXT_BYTES_MAX) or b""
        self.holder = _holder(text)
        self.pid = lock_holder(self.data_dir / LOCK, self.holder.pid)
        if self.socket and os.path.lexists(self.socket):
            try:
                self.answered = self.exchanger.ask("GET", "/healthz")
            except NoAnswer as none:
                self.answered = none


def _holder(text: bytes) -> Holder:
    try:
        said = strict_json.parse(text)
        pid, url, path = said["pid"], said.get("url"), said.get("socket")
    except (ValueError, TypeError, KeyError, AttributeError):
        return Holder()
    return Holder(
        pid if type(pid) is int and pid > 0 else None,
        url if isinstance(url, str) else "",
        path if isinstance(path, str) and os.path.isabs(path) else "",
    )


def lock_holder(path: Path, likely: int | None = None) -> int | None:
    """The pid of whoever holds the kernel's lock on a file, as far as the kernel tells; None if nobody seems to.

    A file is known by its number and device; some file systems name another device there than to stat, so there the
    pid that is `likely` must be the same.
    """
    try:
        found = os.stat(path)
        text = files.read_text(LOCKS, bytes_max=16 * MIB) or b""
    except OSError:
        return None
    device = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}"
    for line in text.decode(errors="replace").splitlines():
        words = line.split()
        if len(words) < 6 or words[1] != "FLOCK" or not words[4].isdigit():
            continue
        place, _, number = words[5].rpartition(":")
        if number == str(found.st_ino) and (place == device or int(words[4]) == likely):
            return int(words[4])
    return None


def is_alive(pid: int) -> bool:
    """True if there is such a process, of whatever user."""
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except (OSError, OverflowError):
        return False
    return True


def program_of(pid: int) -> str:
    """The command line of a process, its words joined; empty where the system does not tell."""
    try:
        data = files.read_text(Path(f"/proc/{pid}/cmdline"), bytes_max=LOCK_TEXT_BYTES_MAX) or b""
    except OSError:
        return ""
    return " ".join(data.decode(errors="replace").split("\0")).strip()


def name_of(pid: int) -> str:
    """The name of a process' program, without its arguments: those may be secrets."""
    with suppress(OSError):
        return (files.read_text(Path(f"/proc/{pid}/comm"), bytes_max=64) or b"").decode(errors="replace").strip()
    return ""
