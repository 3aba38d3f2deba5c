"""The store in operation: opened, folded, written to, scrubbed and closed.

    opening -> folding -> ready -> stopping
                            \\-> failed        (poisoned: whoever runs the engine exits, a restart recovers)

A call that comes before `ready` waits a moment and is then told BUSY with progress: a client that starts together
with the daemon just works, and one that meets a long fold is not left hanging. Health answers in every phase.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from typing import Any, Literal

from convmem import __version__
from convmem.access import Progress, StoreAccess
from convmem.clock import Clock
from convmem.domain import Domain, Origin
from convmem.errors import Busy, OperatorError, Stopping, StoreFailed
from convmem.files import RealFiles
from convmem.holding import usable
from convmem.limits import BUSY_RETRY_MS, OPENING_WAIT_MS_MAX, READERS, REBUILD_RETRY_MS
from convmem.store import check, log, opening, sqlite
from convmem.store.log import Position
from convmem.store.readers import Readers
from convmem.store.recovery import Report
from convmem.store.store import Facts, Store
from convmem.store.writer import Writer

Status = Literal["ok", "degraded", "stopping", "failed"]
JOURNAL = logging.getLogger("convmem")
SCRUB_SLICE_BYTES = 4 * 1024 * 1024
SCRUB_PAUSE_S = 0.02


class Phase(StrEnum):
    """How far the engine is."""

    OPENING = "opening"
    FOLDING = "folding"
    READY = "ready"
    STOPPING = "stopping"
    FAILED = "failed"


@dataclass(frozen=True)
class Folded:
    """Bytes of the log that the index shows, of how many."""

    done: int = 0
    total: int = 0


class Engine:
    """One store, its writer and its readers. Everything but run() is called on the event loop's thread."""

    def __init__(self, files: RealFiles, load_domains: Callable[[], Sequence[Domain]], clock: Clock) -> None:
        """Hold nothing yet. `load_domains` is run in a thread when the store is opened: it may take a while."""
        self._files = files
        self._shelf = sqlite.FileShelf(files)
        self._load_domains = load_domains
        self.clock = clock
        self._started_ms = clock.monotonic_ms()
        self._phase = Phase.OPENING
        self._settled = asyncio.Event()
        self._decided = asyncio.Event()
        self._is_stopped = threading.Event()
        self._folded = Folded()
        self._report = Report()
        self._damage: str | None = None
        self._scrubbed_bytes = 0
        self._writer: Writer | None = None
        self._readers: Readers | None = None
        self._index_is_damaged = False
        self.is_rebuilding = False

    @property
    def phase(self) -> Phase:
        """How far the engine is now."""
        return self._phase

    def is_stopped(self) -> bool:
        """True once stop() was called; long work asks this between two steps. May be called on any thread."""
        return self._is_stopped.is_set()

    async def opened(self) -> bool:
        """Wait until the store has accepted or refused its log; True if it has accepted it."""
        await self._decided.wait()
        return self._phase in (Phase.FOLDING, Phase.READY)

    async def run(self) -> None:
        """Open, fold, serve until stop(). Raises an OperatorError if the store cannot be opened or has failed."""
        store: Store | None = None
        try:
            store = await asyncio.to_thread(self._open)
            self._phase = Phase.FOLDING
            self._decided.set()
            await asyncio.to_thread(self._fold, store)
            if not self.is_stopped():
                await self._serve(store)
        except OperatorError:
            self._phase = Phase.FAILED
            raise
        finally:
            self._decided.set()
            self._settled.set()
            if self._readers is not None:
                self._readers.close()
            if store is not None:
                self._close(store)

    def _open(self) -> Store:
        domains = self._load_domains()
        with usable(self._files.root):
            store, self._report = opening.open_store(self._files, self._shelf, domains, self.clock)
        return store

    def _fold(self, store: Store) -> None:
        with usable(self._files.root):
            replayed = store.catch_up(self._tell, self.is_stopped)
        self._report = replace(self._report, entries_replayed=replayed)

    def _tell(self, done: int, total: int) -> None:
        self._folded = Folded(done, total)

    async def _serve(self, store: Store) -> None:
        path = self._files.path(sqlite.name(store.facts().generation))
        self._writer = Writer(store)
        self._readers = Readers(lambda: sqlite.connect_to_read(path))
        self._phase = Phase.READY
        self._settled.set()
        async with asyncio.TaskGroup() as tasks:
            scrub = tasks.create_task(self._scrub(self._writer))
            try:
                await self._writer.run()
            except StoreFailed as failure:
                JOURNAL.error("the store stopped: %s", failure.__cause__ or failure)
                self._phase = Phase.FAILED
            scrub.cancel()
        if self._phase is Phase.FAILED:
            raise StoreFailed("the store stopped after a failure; a restart will recover it")

    def _close(self, store: Store) -> None:
        damaged = self._index_is_damaged or store.index_is_damaged
        store.close()
        if damaged:
            # The log is whole, only what was folded from it is not: the next start folds it again.
            for generation in self._shelf.generations():
                self._shelf.remove(generation)

    def stop(self) -> None:
        """Take no more commands; run() returns once those taken are answered."""
        if self._phase is not Phase.FAILED:
            self._phase = Phase.STOPPING
        self._is_stopped.set()
        if self._writer is not None:
            self._writer.stop()

    async def _scrub(self, writer: Writer) -> None:
        """Verify the log from its first byte, a slice at a time; damage makes the store degraded and marks it."""
        facts = writer.facts
        file = self._files.open_to_read(log.NAME)
        try:
            walk = check.scrub(file, generation=facts.generation, end=facts.log_bytes)
            while (found := await asyncio.to_thread(_slice, walk)) is not None:
                (self._scrubbed_bytes, _), damage = found
                if damage is not None:
                    self._damage = f"the log is damaged at byte {self._scrubbed_bytes}: {damage}"
                    JOURNAL.error("%s", self._damage)
                    await writer.alone(lambda store: store.mark_damage(self._scrubbed_bytes))
                    return
                await asyncio.sleep(SCRUB_PAUSE_S)
        finally:
            file.close()

    async def ready(self) -> tuple[Writer, Readers]:
        """Return writer and readers; Busy while the index is being folded, Stopping or StoreFailed when it is over."""
        if self._phase is not Phase.READY:
            try:
                async with asyncio.timeout(OPENING_WAIT_MS_MAX / 1000):
                    await self._settled.wait()
            except TimeoutError:
                raise Busy(
                    "the index is being made from the log",
                    retry_after_ms=REBUILD_RETRY_MS,
                    done=self._folded.done,
                    total=self._folded.total,
                ) from None
        if self._phase is Phase.FAILED:
            raise StoreFailed("the store has failed; a restart will recover it")
        if self._phase is Phase.STOPPING or self._writer is None or self._readers is None:
            raise Stopping("the daemon is stopping", retry_after_ms=BUSY_RETRY_MS)
        return self._writer, self._readers

    def access(self, origin: Origin, progress: Progress | None = None) -> StoreAccess:
        """Return what a tool may do on behalf of `origin`."""
        return StoreAccess(self, origin, progress)

    def index_is_damaged(self) -> None:
        """A reader found the index damaged: stop, throw it away, let the next start fold it again."""
        self._index_is_damaged = True
        self._phase = Phase.FAILED
        if self._writer is not None:
            self._writer.fail(StoreFailed("the index is damaged; a restart makes it anew from the log"))

    def reasons(self) -> list[str]:
        """Why the store is not simply well, in sentences; empty if it is."""
        facts = self._writer.facts if self._writer is not None else None
        found = []
        if self._phase in (Phase.OPENING, Phase.FOLDING):
            found.append(f"the index is being made from the log: {self._folded.done} of {self._folded.total} bytes")
        if self._phase in (Phase.STOPPING, Phase.FAILED):
            found.append(f"the store is {self._phase.value}")
        if facts is not None and facts.full_since_ms is not None:
            found.append("the disk is full: writes are refused until one fits, reads go on")
        if self._damage is not None:
            found.append(self._damage)
        return found

    def status(self) -> Status:
        """How the store is, in one word."""
        if self._phase is Phase.STOPPING:
            return "stopping"
        if self._phase is Phase.FAILED:
            return "failed"
        return "degraded" if self.reasons() else "ok"

    def health(self) -> Mapping[str, Any]:
        """Facts for get_system_health that need no index."""
        writer = self._writer
        facts: Facts | None = writer.facts if writer is not None else None
        health: dict[str, Any] = {
            "status": self.status(),
            "reasons": self.reasons(),
            "version": __version__,
            "uptime_ms": int(self.clock.monotonic_ms() - self._started_ms),
            "recovery": asdict(self._report),
        }
        if writer is None or facts is None:
            return health
        counters = self._files.counters
        name = sqlite.name(facts.generation)
        return health | {
            "sequence": str(facts.sequence),
            "generation": str(facts.generation),
            "log_bytes": facts.log_bytes,
            "log_verified_bytes": self._scrubbed_bytes,
            "index_bytes": sum(self._files.size(name + suffix) for suffix in sqlite.SUFFIXES),
            "io": {
                "log": {"writes": counters.writes, "bytes": counters.bytes, "flushes": counters.flushes},
                "index": {"writes": facts.index_writes, "bytes": facts.index_bytes, "flushes": facts.index_flushes},
            },
            "mailbox": {"waiting": writer.depth, "bytes": writer.bytes_held},
            "bytes_held": writer.bytes_held + (1 + READERS) * sqlite.CACHE_KIB * 1024,
            "last_error": facts.last_error or "",
        }


def _slice(walk: Iterator[tuple[Position, str | None]]) -> tuple[Position, str | None] | None:
    """Advance the scrub by one slice; where it stands and what is wrong there, None at the end."""
    start: int | None = None
    found: tuple[Position, str | None] | None = None
    for found in walk:
        position, damage = found
        start = position.offset if start is None else start
        if damage is not None or position.offset - start >= SCRUB_SLICE_BYTES:
            break
    return found
