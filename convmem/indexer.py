"""The indexer: lets the tables of search follow the index, on a thread of its own, and never in the way of a write.

A write is acknowledged without it, and a search looks through what it does not know yet. So it takes one record at a
time, and before the next waits while the writer has work, unless it is so far behind that searches would suffer. What
it keeps is disposable: a file that cannot be trusted is removed and made anew while searches do without.

    opening -> following <-> waiting       (at the index's end, or for the disk)
       ^           |
       +-- doubt --+                       (damaged, missing; or another generation has taken over)
"""

import asyncio
import logging
import os
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from typing import Any

import apsw

from convmem.domain import Domain
from convmem.errors import Stopping
from convmem.files import RealFiles
from convmem.limits import (
    BUSY_RETRY_MS,
    INDEXER_GATHER_MS,
    INDEXER_HURRY_CHANGES,
    INDEXER_RETRY_MS,
)
from convmem.reading import Reading
from convmem.store import search_index, sqlite
from convmem.store.search_index import SearchIndex
from convmem.store.shelf import FileShelf, index_name, search_name
from convmem.store.writer import Writer

JOURNAL = logging.getLogger("convmem")
YIELD_S = 0.001
NICE = 15
Tell = Callable[[int, int], None]


class Indexer:
    """Keeps the tables of search of the generation in use. run() ends when it is cancelled."""

    def __init__(self, files: RealFiles, is_stopped: Callable[[], bool]) -> None:
        self._files = files
        self._shelf = FileShelf(files)
        self._is_stopped = is_stopped
        self._domains: Sequence[Domain] = ()
        self._search: SearchIndex | None = None
        self._index: apsw.Connection | None = None
        self._generation = 0
        self._doubted: tuple[int, str] | None = None
        self._wake: Callable[[], object] = lambda: None
        self._thread = ThreadPoolExecutor(1, "convmem-indexer", initializer=_let_others_go_first)
        self._ended = threading.Event()
        # What is known of itself, for health: what was found at the last opening, the change through which all is
        # known, how many changes it is behind (None: nothing is open), what keeps it from its work.
        self.found = ""
        self.sequence: int | None = None
        self.lag: int | None = None
        self.trouble: str | None = None
        # The change through which all is known and out of the WAL.
        self.rested_sequence: int | None = None

    def doubt(self, generation: int, why: str) -> None:
        """Somebody could not use the tables of a generation. May be called on any thread."""
        self._doubted = (generation, why)
        self._wake()

    async def run(self, writer: Writer, reading: Reading, domains: Sequence[Domain]) -> None:
        """Follow until cancelled; what the disk refuses is tried again. Ends at once if nothing is to be searched."""
        if not search_index.searchables(domains):
            return
        self._domains = domains
        loop = asyncio.get_running_loop()
        self._wake = lambda: loop.call_soon_threadsafe(writer.changed.set)
        try:
            while True:
                if writer.facts.generation != self._generation or self._doubted is not None:
                    await self._in_thread(self._open, writer, reading, writer.facts.generation)
                writer.changed.clear()
                if self._search is None or not await self._in_thread(self._follow, writer):
                    await self._wait(writer)
        finally:
            self._wake = lambda: None
            self._ended.set()
            await self._in_thread(self._close)
            self._thread.shutdown()

    async def _in_thread(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Run a step on a thread and see it end even if cancelled; a step that was asked to stop has done nothing."""
        step = asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)
        try:
            return await asyncio.shield(step)
        except asyncio.CancelledError:
            self._ended.set()
            await asyncio.wait([step])
            raise

    async def _wait(self, writer: Writer) -> None:
        """Until there is something to do; a moment longer, so that what comes together is written together."""
        gather_s = INDEXER_GATHER_MS / 1000
        if not await _is_set_within(writer.changed, gather_s):
            await self._in_thread(self._rest)
            if self._doubted is not None:
                return
            await _is_set_within(writer.changed, None if self.trouble is None else INDEXER_RETRY_MS / 1000)
        await asyncio.sleep(gather_s)

    def _open(self, writer: Writer, reading: Reading, generation: int) -> None:
        """Open what is there for a generation if it can be trusted, else make it anew; let the readers see it."""
        self._generation = generation
        doubted, self._doubted = self._doubted, None
        why = doubted[1] if doubted is not None and doubted[0] == generation else None
        if why is not None:
            reading.offer(generation, has_search=False)
        self._close(abandon=why is not None)
        try:
            self._index = sqlite.connect_to_read(self._files.path(index_name(generation)))
            self._search, self.found = self._trusted(generation, why, self._index)
            self.lag, self.sequence = self._search.lag(self._index), None
            self.trouble = None
            reading.offer(generation, has_search=True)
        except (apsw.Error, OSError) as error:
            self._close(abandon=True)
            self._in_trouble(writer, error)
            self._doubted = (generation, "not open")

    def _trusted(self, generation: int, why: str | None, index: apsw.Connection) -> tuple[SearchIndex, str]:
        path = self._files.path(search_name(generation))
        if why is None:
            why = "missing"
            if generation in self._shelf.searches():
                opened = search_index.reopen(path, self._domains, generation, index)
                if isinstance(opened, SearchIndex):
                    return opened, "kept"
                why = opened
        self._shelf.remove_search(generation)
        if why != "missing":
            JOURNAL.info("the tables of search are %s: they are made anew, searches do without meanwhile", why)
        return search_index.make(path, self._domains, generation, index), f"{why}, made anew"

    def _follow(self, writer: Writer) -> int:
        """One transaction; how many records it was, 0 if all are known or the disk refuses."""
        assert self._search is not None
        assert self._index is not None
        sequence = writer.facts.sequence
        try:
            count = self._search.feed(self._index, lambda: self._pause(writer))
            self.lag = max(0, (self.lag or 0) - count)
            # Counting takes as long as there is to count.
            if self.lag <= INDEXER_HURRY_CHANGES:
                self.lag = self._search.lag(self._index)
            self.trouble = None
            if not count:
                self.sequence = sequence
            return count
        except Stopping:
            return 0
        except sqlite.DAMAGE:
            self._doubted = (self._generation, "damaged")
            return 1
        except (apsw.FullError, apsw.IOError, apsw.BusyError) as error:
            self._in_trouble(writer, error)
            return 0

    def _rest(self) -> None:
        """What is due when nothing comes: move pages from the WAL into the file, and look whether all is well."""
        if self._search is None or self._index is None or self.rested_sequence == self.sequence:
            return
        try:
            self._search.rest(self._index)
            if not self._search.is_sound(self._index):
                self._doubted = (self._generation, "not of this index")
        except (apsw.SQLError, *sqlite.DAMAGE):
            self._doubted = (self._generation, "damaged")
        except (apsw.FullError, apsw.IOError, apsw.BusyError):
            return
        self.rested_sequence = self.sequence

    def _pause(self, writer: Writer) -> None:
        """Between two records: the writer goes first, for as long as it has work. Stopping at an end."""
        if self._is_stopped() or self._ended.is_set():
            raise Stopping("the daemon is stopping", retry_after_ms=BUSY_RETRY_MS)
        # Always a moment, in which a request that is just being read becomes work of the writer.
        while not self._is_far_behind(writer) and not self._ended.wait(YIELD_S) and writer.has_work:
            pass

    def _is_far_behind(self, writer: Writer) -> bool:
        """True from when many changes are not known until all are."""
        return writer.facts.sequence - (self.sequence or 0) > INDEXER_HURRY_CHANGES

    def _in_trouble(self, writer: Writer, error: Exception) -> None:
        if writer.facts.generation != self._generation:
            # Its files were taken away because another generation took over meanwhile: nothing is wrong.
            return
        sentence = f"the tables of search cannot be kept ({error}): searches look at every message"
        if self.trouble != sentence:
            JOURNAL.error("%s", sentence)
        self.trouble = sentence

    def build(self, generation: int, tell: Tell) -> None:
        """Make the tables of a generation that is not in use yet, as far as its index goes. Stopping; what the disk
        refuses comes through.
        """
        if not search_index.searchables(self._domains):
            return
        self._shelf.remove_search(generation)
        path = self._files.path(search_name(generation))
        with (
            closing(sqlite.connect_to_read(self._files.path(index_name(generation)))) as index,
            closing(search_index.make(path, self._domains, generation, index)) as search,
        ):
            total = search.lag(index)
            done = 0
            while count := search.feed(index, self._go_on):
                done += count
                tell(done, total)

    def _go_on(self) -> None:
        if self._is_stopped():
            raise Stopping("the daemon is stopping; the store is as it was", retry_after_ms=BUSY_RETRY_MS)

    def _close(self, *, abandon: bool = False) -> None:
        if self._search is not None:
            self._search.abandon() if abandon else self._search.close()
        if self._index is not None:
            self._index.close()
        self._search = self._index = self.lag = self.sequence = self.rested_sequence = None


async def _is_set_within(event: asyncio.Event, seconds: float | None) -> bool:
    """Wait for an event; False if it does not come in time."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return False
    return True


def _let_others_go_first() -> None:
    """Let this thread have a processor when no other thread of ours wants it; Linux has priorities of threads."""
    if sys.platform == "linux":
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICE)
