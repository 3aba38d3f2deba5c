"""The store in operation: opened, folded, written to, scrubbed and closed.

A call that comes before `ready` waits a moment and is then told BUSY with progress: a client that starts together
with the daemon just works, and one that meets a long fold is not left hanging. Health answers in every phase.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeVar

import apsw

from convmem import apart, health
from convmem.access import Progress, StoreAccess
from convmem.backups import Backups
from convmem.clock import Clock
from convmem.domain import Domain, Origin
from convmem.errors import Busy, ConvmemError, OperatorError, Stopping, StoreFailed
from convmem.files import RealFiles
from convmem.health import Beside, Status
from convmem.holding import usable
from convmem.indexer import Indexer
from convmem.limits import BUSY_RETRY_MS, OPENING_WAIT_MS_MAX, REBUILD_RETRY_MS
from convmem.phases import Folded, Phase
from convmem.reach import Reach
from convmem.reading import Reading
from convmem.scrub import Scrub
from convmem.spools import Spools
from convmem.store import opening
from convmem.store.compaction import Parts
from convmem.store.log import Position
from convmem.store.recovery import Report
from convmem.store.shelf import FileShelf
from convmem.store.store import Store
from convmem.store.table_files import TableFiles
from convmem.store.writer import Writer
from convmem.table_reading import TableReading
from convmem.targets import Mounting

Result = TypeVar("Result")
JOURNAL = logging.getLogger("convmem")


class Engine:
    """One store, its writer and its readers. Everything but run() is called on the event loop's thread."""

    def __init__(
        self,
        files: RealFiles,
        load_domains: Callable[[], Sequence[Domain]],
        clock: Clock,
        load_mounting: Callable[[], Mounting | None] = lambda: None,
    ) -> None:
        """Hold nothing yet. What may take a while to load is loaded in a thread when the store is opened."""
        self.files = files
        self._shelf = FileShelf(files)
        self._load_domains, self._load_mounting = load_domains, load_mounting
        self.clock = clock
        self.started_ms = clock.monotonic_ms()
        self._phase = Phase.OPENING
        self._settled = asyncio.Event()
        self._decided = asyncio.Event()
        self._is_stopped = threading.Event()
        self.folded = Folded()
        self.recovery = Report()
        self.scrub = Scrub(files)
        self.backups = Backups(self, files)
        self.beside: list[Beside] = []
        self.spools = Spools(clock)
        # Secrets are taken out of whatever anybody writes, not only of what hooks capture.
        self.redacts_everything = False
        self.writer: Writer | None = None
        self.reading: Reading | None = None
        self._table_reading: TableReading | None = None
        self.mounting: Mounting | None = None
        self.mounts_at_once = True
        self.indexer = Indexer(files, self.is_stopped)
        self._index_is_damaged = False
        self._domains: Sequence[Domain] = ()
        self._no_writes: str | None = None
        self._tasks: asyncio.TaskGroup | None = None
        # Held by whoever makes a new generation; while a file comes in over the wire; while an export is written.
        self.renewal, self.receiving, self.exporting = asyncio.Lock(), asyncio.Lock(), asyncio.Lock()
        self.last_compaction_ms: int | None = None

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
            if self.reading is not None:
                self.reading.close()
            await self._close_tables()
            if store is not None:
                self._close(store)

    def _open(self) -> Store:
        self._domains, self.mounting = self._load_domains(), self._load_mounting()
        with usable(self.files.root):
            store, self.recovery = opening.open_store(self.files, self._shelf, self._domains, self.clock)
        return store

    def _fold(self, store: Store) -> None:
        with usable(self.files.root):
            replayed = store.catch_up(self._tell, self.is_stopped)
        self.recovery = replace(self.recovery, entries_replayed=replayed)

    def _tell(self, done: int, total: int) -> None:
        self.folded = Folded(done, total)

    async def _serve(self, store: Store) -> None:
        self._table_reading = TableReading(TableFiles(self._domains, self.clock), self.clock, self.is_stopped)
        self.writer = Writer(store, self._table_reading.files)
        self.reading = Reading(self.files, store.facts().generation, self.indexer.doubt)
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            self._phase = Phase.READY
            self._settled.set()
            work = (
                self.scrub.run(self.writer),
                self.backups.run(),
                *(part.run() for part in self.beside),
                self.indexer.run(self.writer, self.reading, self._domains),
                *((self.mount(),) if self.mounts_at_once else ()),
            )
            beside = [tasks.create_task(task) for task in work]
            try:
                await self.writer.run()
            except StoreFailed as failure:
                JOURNAL.error("the store stopped: %s", failure.__cause__ or failure)
                self._phase = Phase.FAILED
                self._is_stopped.set()
            for task in beside:
                task.cancel()
        if self._phase is Phase.FAILED:
            raise StoreFailed("the store stopped after a failure; a restart will recover it")

    async def mount(self) -> None:
        """Return once the tables are mounted, if there are any to be."""
        if self.mounting is not None:
            await self.mounting.open(self.access(Origin("local", "daemon")))

    @property
    def table_reading(self) -> TableReading:
        """Who reads table files; known once the store is open."""
        assert self._table_reading is not None
        return self._table_reading

    @property
    def parts(self) -> Parts:
        """What the store is made of; known once it is open."""
        return Parts(self.files, self._shelf, self._domains, self.clock)

    def committed(self) -> Position:
        """How far the log is committed: what stands before it stays. May be called on any thread."""
        assert self.writer is not None
        facts = self.writer.facts
        return Position(facts.log_bytes, facts.sequence + 1)

    def snapshot(self) -> apsw.Connection:
        """A connection of its own that sees one moment of the index, for long reading; closed by the caller."""
        assert self.writer is not None
        assert self.reading is not None
        writer = self.writer
        return self.reading.snapshot(lambda: writer.facts.generation)

    def renewed(self, generation: int) -> None:
        """Let readers go over to another generation; called on the writer's thread before the next batch."""
        assert self.reading is not None
        self.reading.renew(generation, has_search=generation in self._shelf.searches())

    async def apart(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Run long work as a task of the engine, which ends only behind it: whoever asked may go away meanwhile."""
        try:
            await self.ready()
        except ConvmemError:
            work.close()
            raise
        assert self._tasks is not None
        return await apart.run(self._tasks, work)

    @contextmanager
    def without_writes(self, sentence: str) -> Iterator[None]:
        """Refuse all writes inside the block as Busy with this sentence; reads go on."""
        self._no_writes = sentence
        try:
            yield
        finally:
            self._no_writes = None

    def refuse_if_closed_to_writes(self) -> None:
        """Busy while something runs that admits no write."""
        if self._no_writes is not None:
            raise Busy(self._no_writes, retry_after_ms=REBUILD_RETRY_MS)

    async def _close_tables(self) -> None:
        if self._table_reading is not None:
            await asyncio.to_thread(self._table_reading.close)
        if self.mounting is not None:
            self.mounting.close()

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
        if self.writer is not None:
            self.writer.stop()

    async def ready(self) -> tuple[Writer, Reading]:
        """Return writer and reading; Busy while the index is being folded, Stopping or StoreFailed when it is over."""
        if self._phase is not Phase.READY:
            try:
                async with asyncio.timeout(OPENING_WAIT_MS_MAX / 1000):
                    await self._settled.wait()
            except TimeoutError:
                raise Busy(
                    "the index is being made from the log",
                    retry_after_ms=REBUILD_RETRY_MS,
                    done=self.folded.done,
                    total=self.folded.total,
                ) from None
        if self._phase is Phase.FAILED:
            raise StoreFailed("the store has failed; a restart will recover it")
        if self._phase is Phase.STOPPING or self.writer is None or self.reading is None:
            raise Stopping("the daemon is stopping", retry_after_ms=BUSY_RETRY_MS)
        return self.writer, self.reading

    def access(self, origin: Origin, progress: Progress | None = None, reach: Reach = "admin") -> StoreAccess:
        """Return what a tool may do on behalf of `origin`."""
        return StoreAccess(self, origin, progress, reach)

    def index_is_damaged(self) -> None:
        """A reader found the index damaged: stop, throw it away, let the next start fold it again."""
        self._index_is_damaged = True
        self._phase = Phase.FAILED
        if self.writer is not None:
            self.writer.fail(StoreFailed("the index is damaged; a restart makes it anew from the log"))

    def reasons(self) -> list[str]:
        """Why the store is not simply well, in sentences; empty if it is."""
        return health.reasons(self)

    def status(self) -> Status:
        """How the store is, in one word."""
        return health.status(self)

    def health(self) -> Mapping[str, Any]:
        """Facts for get_system_health that need no index."""
        return health.health(self)
