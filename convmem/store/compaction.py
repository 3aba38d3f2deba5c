"""Compaction: the live state goes into a new generation beside the old log, and takes its place in one moment.

    1  fold the log, as far as it is committed, into a scratch index; nothing is taken from the index in use: that one
       may be damaged, the log is checked frame by frame
    2  write what is live there into a draft (generation.py), then the batches that came meanwhile; sync; fold its
       index; let `beside` make what else belongs to the generation
    3  between two batches of the writer: the last few batches, sync, rename, sync the directory, go on with the new

Reads and writes go on during 1 and 2. Whoever brings records along (an import) hands in another `records`; the rest is
the same. A stop, a refusal or a full disk before the rename leaves the old generation as if nothing had been tried.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from heapq import merge
from typing import NamedTuple

import apsw

from convmem.clock import Clock
from convmem.domain import Domain, Kept
from convmem.errors import DiskFault, LogCorrupt, Stopping, StorageFull, StoreFailed
from convmem.files import NO_SPACE, Files
from convmem.limits import BUSY_RETRY_MS, STORAGE_FULL_RETRY_MS
from convmem.store.check import differences
from convmem.store.generation import Draft
from convmem.store.log import NAME, Log, Position
from convmem.store.made import Maker
from convmem.store.shelf import Shelf
from convmem.store.sqlite import DAMAGE, Index, State
from convmem.store.store import Store

# Progress rises over three parts of the work, each of about the same length.
FOLDING, WRITING, BUILDING, BESIDE, PARTS = 0, 1, 2, 3, 4
# Frames that the draft may be behind when the writer is asked to stand still.
CLOSE_BYTES = 256 * 1024
ROUNDS_MAX = 5
CUT_TAILS = "cut-"

Records = Callable[[apsw.Connection, int, int], Iterator[Kept]]
Tell = Callable[[float, float, str], None]
Beside = Callable[[int, Callable[[int, int], None]], None]


class Parts(NamedTuple):
    """What a store is made of, for whoever makes its next generation."""

    files: Files
    shelf: Shelf
    domains: Sequence[Domain]
    clock: Clock


class Outcome(NamedTuple):
    """What a rewrite did."""

    generation: int
    log_bytes_before: int
    log_bytes_after: int
    kept: int


def live(connection: apsw.Connection, domains: Sequence[Domain]) -> Iterator[Kept]:
    """Every live record of every domain, by rising sequence."""
    if len(domains) == 1:
        return domains[0].live(connection)
    return merge(*(domain.live(connection) for domain in domains), key=lambda kept: kept.sequence)


class Rewrite:
    """One rewrite of a store's log. `committed` says how far the log may be read now; `tell` hears how far it is."""

    def __init__(
        self,
        parts: Parts,
        log: Log,
        committed: Callable[[], Position],
        tell: Tell = lambda done, total, sentence: None,
        is_stopped: Callable[[], bool] = lambda: False,
        records: Records | None = None,
        beside: Beside | None = None,
    ) -> None:
        self._parts = parts
        self._log = log
        self._committed = committed
        self._tell = tell
        self._is_stopped = is_stopped
        self._records = records or (lambda connection, through, last_number: live(connection, parts.domains))
        self._beside = beside or (lambda generation, tell: tell(1, 1))
        self._draft: Draft | None = None
        self._copied = Position(0, 1)
        self._kept = 0
        self._old: tuple[Log, Index] | None = None

    def prepare(self) -> None:
        """Steps 1 and 2, beside a store in use. StorageFull, DiskFault or Stopping: nothing has happened."""
        with self._undone_on_failure():
            start = self._committed()
            with self.scratch(start) as (connection, state):
                self._write(connection, start, state)
            self._copy(self._committed())
            assert self._draft is not None
            self._draft.sync()
            self._draft.fold(self._told(BUILDING, "folding the index of the new generation"), self._is_stopped)
            self._beside(self._draft.log.generation, self._told(BESIDE, "making the tables of search"))
            for _ in range(ROUNDS_MAX):
                end = self._committed()
                if end.offset - self._copied.offset <= CLOSE_BYTES:
                    break
                self._copy(end)
                self._draft.sync()
                self._draft.catch_up()

    @contextmanager
    def scratch(self, end: Position) -> Iterator[tuple[apsw.Connection, State]]:
        """A fresh fold of the log until `end`: the connection to read from, and how it stands. LogCorrupt."""
        try:
            with closing(self._parts.shelf.scratch()) as connection:
                index = Index(connection, self._parts.domains, fresh_generation=self._log.generation)
                store = Store(self._log.until(end), index, self._parts.domains, self._parts.clock)
                try:
                    store.fold_at_once(self._told(FOLDING, "folding the log"), self._is_stopped)
                except StoreFailed as failure:
                    # Nothing has failed but a read of what was written long ago; the store goes on.
                    offset, fault = failure.details["offset"], failure.details["fault"]
                    raise LogCorrupt(
                        f"{NAME}, byte {offset}: {fault}; nothing was changed",
                        file=NAME,
                        offset=offset,
                        sequence=index.state.end.next_sequence,
                    ) from failure
                yield connection, index.state
        finally:
            self._parts.shelf.drop_scratch()

    def differs(self, index: apsw.Connection, end: Position) -> bool:
        """True if an index that stands at `end` is not the fold of its log. LogCorrupt, StorageFull, DiskFault."""
        with self._undone_on_failure(), self.scratch(end) as (fresh, _):
            try:
                return bool(differences(index, fresh))
            except DAMAGE:
                return True

    def _write(self, connection: apsw.Connection, start: Position, state: State) -> None:
        parts, through = self._parts, start.next_sequence - 1
        total = sum(domain.records(connection) for domain in parts.domains)
        last, made, maker = through, state.made, Maker(parts.domains)
        tell = self._told(WRITING, "writing what is live")

        def watched() -> Iterator[Kept]:
            nonlocal last, made
            for kept in self._records(connection, through, state.made.last_number):
                last, made = max(last, kept.sequence), made.raised(maker.of([kept.event]))
                yield kept

        def told(count: int) -> None:
            self._kept += count
            tell(min(self._kept, total), total)
            self._refuse_if_stopped()

        self._draft = Draft(parts.files, parts.shelf, parts.domains, parts.clock, self._log.generation + 1)
        self._draft.keep(watched(), told)
        self._draft.end_state(last, made, state.store_id)
        self._copied = start

    def _copy(self, end: Position) -> None:
        """Let the draft follow the old log until `end`."""
        assert self._draft is not None
        self._draft.follow(self._log.until(end).frames(self._copied.offset))
        self._copied = end

    def finish(self, store: Store) -> Outcome:
        """Step 3, alone with the store. StoreFailed if nobody can know which generation a start would find."""
        assert self._draft is not None
        with self._undone_on_failure():
            self._copy(store.log.end)
            self._draft.sync()
            self._draft.catch_up()
            assert self._draft.index is not None
            self._draft.name()
        try:
            self._draft.make_durable()
        except OSError as error:
            raise StoreFailed("the directory could not be synced while a new generation took over") from error
        before = store.log
        self._old = store.adopt(self._draft.log, self._draft.index)
        self._draft = None
        return Outcome(store.log.generation, before.end.offset, store.log.end.offset, self._kept)

    def clean(self) -> None:
        """Close and remove the old generation, whose readers have gone, and the tails that were cut off. DiskFault if
        some of that stays; the new generation is in use all the same.
        """
        assert self._old is not None
        log, index = self._old
        log.close()
        index.abandon()
        try:
            for generation in self._parts.shelf.generations():
                if generation != log.generation + 1:
                    self._parts.shelf.remove(generation)
            remove_cut_tails(self._parts.files)
        except OSError as error:
            raise DiskFault(f"the new generation is in use, but files of the old one are left ({error})") from error

    def discard(self) -> None:
        """Give up what prepare() has made, unless it is in use by now."""
        if self._draft is not None:
            self._draft.discard()
            self._draft = None

    @contextmanager
    def _undone_on_failure(self) -> Iterator[None]:
        """Whatever goes wrong inside, nothing has happened; what the disk refuses is said in the store's own words."""
        is_done = False
        try:
            yield
            is_done = True
        except (OSError, apsw.FullError, apsw.IOError, apsw.CantOpenError) as error:
            if isinstance(error, apsw.FullError) or getattr(error, "errno", None) in NO_SPACE:
                raise StorageFull(
                    "the disk took no more; the store is as it was", retry_after_ms=STORAGE_FULL_RETRY_MS
                ) from error
            raise DiskFault(f"the disk refused the new generation ({error}); the store is as it was") from error
        finally:
            if not is_done:
                self.discard()

    def _told(self, part: int, sentence: str) -> Callable[[int, int], None]:
        """Tells how far all of it is, in hundredths, while one part of the work goes from 0 to its own total."""
        return lambda done, total: self._tell(100 * (part + done / max(total, 1)) / PARTS, 100, sentence)

    def _refuse_if_stopped(self) -> None:
        if self._is_stopped():
            raise Stopping("the daemon is stopping; the store is as it was", retry_after_ms=BUSY_RETRY_MS)


def leftovers(parts: Parts, generation: int) -> list[str]:
    """What else may hold text that was deleted: tails that were cut off, and indexes of another generation."""
    others = [str(other) for other in parts.shelf.generations() if other != generation]
    return cut_tails(parts.files) + others


def cut_tails(files: Files) -> list[str]:
    """The names of the ends that recovery had cut off and kept."""
    return [name for name in files.names() if name.startswith(CUT_TAILS) and name.endswith(".tail")]


def remove_cut_tails(files: Files) -> None:
    """What was cut off may hold what was deleted since; nobody was ever told that it is there."""
    for name in cut_tails(files):
        files.remove(name)
