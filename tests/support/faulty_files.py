"""A disk in memory that keeps two copies of each file: what the program wrote, and what would survive a power cut.

Fault rules. Every write, truncate, sync, creation, staging, rename, removal and directory sync is a numbered step.
  cut_at_step   the power fails there: PowerLost is raised, and again at every later step, whoever still tidies up;
                after_power_loss() gives the disk that the next start finds
  fail_at_step  that step raises OSError(errno); a write leaves `short_write` of its bytes behind first
  capacity      bytes all files may hold together; a write over it leaves what fits and raises ENOSPC
What was never synced survives as the Tear says. A truncate is like data: durable only after a sync. So are names: what
was staged, renamed or removed is durable only after the directory was synced (open() does that for a new file); Names
says which of the two directories is found after the cut.
"""

import errno
from dataclasses import dataclass, field
from enum import Enum

from convmem.files import Counters

SECTOR = 512


class PowerLost(BaseException):
    """Not an Exception: no `except Exception` may swallow a power cut."""


class Names(Enum):
    """Which names a power cut leaves, where the directory was not synced."""

    AS_SYNCED = "as synced"
    AS_WRITTEN = "as written"


class Tear(Enum):
    """How much of what was not synced reached the medium."""

    NOTHING = "nothing"
    HALF = "half"
    ALL_BUT_ONE_BYTE = "all but one byte"
    EVERYTHING = "everything"
    ZEROS = "the size, but zeros for data"
    LAST_SECTOR_ONLY = "the last sector before the first"


@dataclass
class FaultyFile:
    disk: "FaultyFiles"
    saved: bytes = b""
    written: bytes = b""
    is_removed: bool = False

    def size(self) -> int:
        return len(self.written)

    def read(self, offset: int, size: int) -> bytes:
        return self.written[offset : offset + size]

    def write(self, offset: int, data: bytes) -> None:
        self.disk.refuse_if_dark()
        assert offset <= len(self.written), "a hole: the writer lost count"
        fitting = data[: self.disk.room()]
        if self.disk.fails_next():
            fitting = data[: int(len(data) * self.disk.short_write)]
        self.written = self.written[:offset] + fitting + self.written[offset + len(fitting) :]
        self.disk.counters.writes += 1
        self.disk.counters.bytes += len(fitting)
        self.disk.step("write")
        if len(fitting) < len(data):
            raise OSError(errno.ENOSPC, "No space left on device")

    def truncate(self, size: int) -> None:
        self.disk.step("truncate")
        self.written = self.written[:size]

    def sync(self) -> None:
        self.disk.step("sync")
        self.saved = self.written
        self.disk.counters.flushes += 1

    def is_linked(self) -> bool:
        return not self.is_removed

    def close(self) -> None:
        pass


@dataclass
class FaultyFiles:
    cut_at_step: int | None = None
    fail_at_step: int | None = None
    error: int = errno.EIO
    short_write: float = 0.5
    capacity: int | None = None
    counters: Counters = field(default_factory=Counters)
    steps: list[str] = field(default_factory=list)
    files: dict[str, FaultyFile] = field(default_factory=dict)
    synced_names: dict[str, FaultyFile] = field(default_factory=dict)

    def open(self, name: str) -> FaultyFile:
        if name not in self.files:
            self.step("create")
            self.files[name] = FaultyFile(self)
            self.synced_names = dict(self.files)
            self.counters.flushes += 1
        return self.files[name]

    def open_to_read(self, name: str) -> FaultyFile:
        return self.files[name]

    def stage(self, name: str) -> FaultyFile:
        self.step("stage")
        self._forget(name)
        self.files[name] = FaultyFile(self)
        return self.files[name]

    def rename(self, old: str, new: str) -> None:
        self.step("rename")
        self._forget(new)
        self.files[new] = self.files.pop(old)

    def sync_directory(self) -> None:
        self.step("sync directory")
        self.synced_names = dict(self.files)
        self.counters.flushes += 1

    def exists(self, name: str) -> bool:
        return name in self.files

    def size(self, name: str) -> int:
        return len(self.files[name].written) if name in self.files else 0

    def names(self) -> list[str]:
        return sorted(self.files)

    def remove(self, name: str) -> None:
        if name in self.files:
            self.step("remove")
            self._forget(name)

    def _forget(self, name: str) -> None:
        if name in self.files:
            self.files.pop(name).is_removed = True

    def room(self) -> int | None:
        if self.capacity is None:
            return None
        return max(0, self.capacity - sum(len(file.written) for file in self.files.values()))

    def fails_next(self) -> bool:
        return self.fail_at_step == len(self.steps) + 1

    @property
    def is_dark(self) -> bool:
        """True once the power has failed."""
        return self.cut_at_step is not None and len(self.steps) >= self.cut_at_step

    def refuse_if_dark(self) -> None:
        if self.is_dark:
            raise PowerLost("the power has failed already")

    def step(self, name: str) -> None:
        self.refuse_if_dark()
        self.steps.append(name)
        if len(self.steps) == self.cut_at_step:
            raise PowerLost(name)
        if len(self.steps) == self.fail_at_step:
            raise OSError(self.error, "made to fail")

    def after_power_loss(self, tear: Tear, names: Names = Names.AS_WRITTEN) -> "FaultyFiles":
        disk = FaultyFiles()
        for name, file in (self.files if names is Names.AS_WRITTEN else self.synced_names).items():
            survived = _survivor(file.saved, file.written, tear)
            disk.files[name] = FaultyFile(disk, saved=survived, written=survived)
        disk.synced_names = dict(disk.files)
        return disk


def _survivor(saved: bytes, written: bytes, tear: Tear) -> bytes:
    if not written.startswith(saved):  # a truncate that was never synced
        return written if tear is Tear.EVERYTHING else saved
    tail = written[len(saved) :]
    match tear:
        case Tear.NOTHING:
            return saved
        case Tear.HALF:
            return saved + tail[: len(tail) // 2]
        case Tear.ALL_BUT_ONE_BYTE:
            return saved + tail[:-1]
        case Tear.EVERYTHING:
            return written
        case Tear.ZEROS:
            return saved + bytes(len(tail))
        case Tear.LAST_SECTOR_ONLY:
            lost = max(0, len(tail) - SECTOR)
            return saved + bytes(lost) + tail[lost:]
