"""What came while others had the spool: kept beside it, until whoever has the turn next puts it behind all that waits.

A host waits for its turn at the spool for milliseconds only, while whoever has it may be stopped, or writing many
megabytes. The file here has a lock of its own, which is held for one write or one copy of what little is in it. So
nothing is lost where many hooks meet, and all of it stays in the order in which it came: a later event is appended only
after this has been.

Rejected: sending it past what waits (out of order), and dropping it (hosts that work at once would lose events).
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from convmem import file_descriptors as disk
from convmem.clock import Clock, sleep_ms
from convmem.hooks import lines
from convmem.limits import HOOK_LATE_MS_MAX, SPOOL_LATE_BYTES_MAX


class Late:
    """The lines of one spool that wait for a turn. Methods raise OSError."""

    def __init__(self, path: str, clock: Clock) -> None:
        self._path = path
        self._clock = clock

    def is_empty(self) -> bool:
        """Whether nothing is kept here."""
        return disk.size(self._path) == 0

    def add(self, data: bytes) -> bool:
        """Keep whole lines; False if there is no room for them, or no time."""
        with self._held(HOOK_LATE_MS_MAX) as file:
            if file is None:
                return False
            size, _ = disk.size_and_number(file)
            data = following(file, size, data)
            if size + len(data) > SPOOL_LATE_BYTES_MAX:
                return False
            disk.write_at_end(file, size, data)
        return True

    def hand_over(self, put: Callable[[bytes], None], wait_ms: int) -> bool:
        """Give away all that is kept; False if somebody else is at it for so long. If `put` raises it is kept; who
        dies in between gives it away twice.
        """
        if self.is_empty():
            return True
        with self._held(wait_ms) as file:
            if file is None:
                return False
            put(disk.read(file, 0, disk.size_and_number(file)[0]))
            disk.truncate(file)
        return True

    @contextmanager
    def _held(self, wait_ms: int) -> Iterator[int | None]:
        file = disk.open_file(self._path)
        try:
            is_mine = disk.lock_within(file, wait_ms, self._clock.monotonic_ms, sleep_ms)
            yield file if is_mine else None
        finally:
            disk.close(file)


def following(file: int, size: int, data: bytes) -> bytes:
    """The same lines as they follow what is in a file, whose last line may never have been finished."""
    return lines.BREAK + data if size and disk.read(file, size - 1, 1) != lines.BREAK else data
