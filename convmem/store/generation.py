"""A generation in the making: a log beside the log, the index folded from it, and the moment that they take over.

    staging-<generation>.log    state frames, the end of the state, then batches copied from the old log
    index-<generation>.db       folded from that file, as every index is folded from its log

Nothing that is in use is touched before name(), and name() is one rename: whoever starts afterwards finds the old
generation or the new one. A draft that never gets its name is swept away, at the latest by the next start.

The state is written in the log's own form and the index is folded from it, rather than copied from the old index: what
a start would make of the new log is what readers see from the first moment on. No database file is ever renamed: SQLite
would apply the old file's -wal to the new one.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress

from convmem.clock import Clock
from convmem.domain import Domain, Kept
from convmem.files import Files
from convmem.limits import STATE_FRAME_BYTES
from convmem.store import log
from convmem.store.codec import Codec, Through
from convmem.store.log import Frame, Log, Position
from convmem.store.made import Made
from convmem.store.shelf import Shelf
from convmem.store.sqlite import Index
from convmem.store.store import Report, Store

STAGING = "staging-"


def sweep(files: Files) -> None:
    """Remove what drafts left behind that never took over."""
    for name in files.names():
        if name.startswith(STAGING):
            files.remove(name)


class Draft:
    """A log of `generation` beside the one in use. What the disk refuses comes through: then discard() it."""

    def __init__(self, files: Files, shelf: Shelf, domains: Sequence[Domain], clock: Clock, generation: int) -> None:
        self._files = files
        self._shelf = shelf
        self._domains = domains
        self._clock = clock
        self._codec = Codec(domains)
        self._name = f"{STAGING}{generation}.log"
        self._synced = Position(0, 1)
        self.log = Log(files.stage(self._name), generation=generation, end=Position(0, 1))
        self.index: Index | None = None

    def keep(self, records: Iterable[Kept], told: Callable[[int], None] = lambda count: None) -> int:
        """Write live records, which come by rising sequence; return how many. `told` hears the count of each frame."""
        waiting: list[tuple[Kept, bytes]] = []
        size = count = 0
        for kept in records:
            event = self._codec.encode_event(kept.event)
            waiting.append((kept, event))
            size += len(event)
            if size >= STATE_FRAME_BYTES:
                count += self._write(waiting, told)
                waiting, size = [], 0
        return count + (self._write(waiting, told) if waiting else 0)

    def _write(self, records: Sequence[tuple[Kept, bytes]], told: Callable[[int], None]) -> int:
        self.log.append_state(self._codec.encode_state(records), records[0][0].sequence, len(records))
        told(len(records))
        return len(records)

    def end_state(self, through: int, made: Made, store_id: str = "") -> None:
        """Say that the state speaks for all sequences up to `through`; batches may follow.

        Without a `store_id` it is a new store.
        """
        if not store_id:
            store_id = f"{self._clock.random_bits():032x}"
        end = Through(last_id=made.last_id, last_number=made.last_number, store_id=store_id)
        self.log.append_state(self._codec.encode_through(end), through, 0)

    def follow(self, frames: Iterable[Frame]) -> None:
        """Copy batches that the old log has taken meanwhile, as they are, under this generation."""
        for frame in frames:
            assert frame.header.sequence == self.log.end.next_sequence
            self.log.append(frame.payload, frame.header.entry_count)

    def sync(self) -> None:
        """Return when all of it is on the disk; costs nothing if that is so already."""
        if self._synced != self.log.end:
            self.log.sync()
            self._synced = self.log.end

    def fold(self, report: Report, is_stopped: Callable[[], bool]) -> None:
        """Make the index from the log; what follow() adds later is added by catch_up(). Stops early when asked to."""
        generation = self.log.generation
        building = Index(self._shelf.build(generation), self._domains, fresh_generation=generation)
        try:
            Store(self.log, building, self._domains, self._clock).fold_at_once(report, is_stopped)
            building.count()
        finally:
            building.close()
        self._shelf.settle(generation)
        self.index = Index(self._shelf.open(generation), self._domains, fresh_generation=None)
        self.index.counters.writes += building.counters.writes
        self.index.counters.bytes_before += building.counters.bytes
        self.index.counters.flushes += 1

    def catch_up(self) -> None:
        """Bring the index to the end of the log."""
        assert self.index is not None
        Store(self.log, self.index, self._domains, self._clock).catch_up(lambda done, total: None)

    def name(self) -> None:
        """Give the log its name, in the place of the old one. OSError: it has not got it."""
        assert self._synced == self.log.end
        self._files.rename(self._name, log.NAME)

    def make_durable(self) -> None:
        """Return when the name is on the disk: from here on this is the store. OSError: nobody knows which of the two
        generations a start would find; both are whole.
        """
        self._files.sync_directory()

    def discard(self) -> None:
        """Close and remove all of it; it has not got its name."""
        self.log.close()
        if self.index is not None:
            self.index.close()
        # What cannot be removed now is removed by the next start.
        with suppress(OSError):
            self._files.remove(self._name)
        with suppress(OSError):
            self._shelf.remove(self.log.generation)
