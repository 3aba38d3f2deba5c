"""The whole durable path as plain synchronous code: decide, append, sync, show.

    one command = one savepoint = one entry                        (all of it or none)
    one batch   = one frame = one write = one sync = one COMMIT    (told to callers only after)

Durable before visible: commands are decided and applied inside the index's open transaction, so the second command of
a batch sees the first; readers see both only after the log's sync. A full disk undoes the batch and nothing else. A
failed sync poisons the store: what the kernel dropped cannot be asked for again, only a restart into recovery knows
what is there.

Nothing here knows asyncio; one thread at a time may be inside.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from typing import Any, NamedTuple

import apsw

from convmem.clock import Clock, Identifiers
from convmem.domain import Command, Domain, Event, Origin, Place, Stamp
from convmem.errors import Busy, CallerError, RetryError, Stopping, StorageFull, StoreFailed
from convmem.files import NO_SPACE
from convmem.limits import BUSY_RETRY_MS, CHECKPOINT_PAGES_BUSY, STORAGE_FULL_RETRY_MS
from convmem.store.codec import Codec, Entry
from convmem.store.frame import checksum_of
from convmem.store.log import Log, Position
from convmem.store.made import Made, Maker
from convmem.store.sqlite import DAMAGE, Index

REPLAY_ENTRIES = 5_000

Report = Callable[[int, int], None]


def identity(payload: bytes) -> str:
    """The identity of a store whose log began with this batch; later generations carry it along."""
    return sha256(payload).hexdigest()[:32]


class Ticket(NamedTuple):
    """A command, and who left it."""

    command: Command
    origin: Origin


class Facts(NamedTuple):
    """Where the store stands, for health; taken after each batch."""

    sequence: int
    generation: int
    log_bytes: int
    full_since_ms: int | None
    last_error: str | None
    index_writes: int
    index_bytes: int
    index_flushes: int
    waiting_pages: int


class Store:
    """A log and the index that is folded from it. `index` may be behind the log: call catch_up() before commit()."""

    def __init__(self, log: Log, index: Index, domains: Sequence[Domain], clock: Clock) -> None:
        self._log = log
        self._index = index
        self._clock = clock
        self._codec = Codec(domains)
        self._deciders = {kind: decide for domain in domains for kind, decide in domain.deciders.items()}
        self._appliers = {kind: apply for domain in domains for kind, apply in domain.appliers.items()}
        self._maker = Maker(domains)
        self._identifiers = Identifiers(clock, index.state.made.last_id or None)
        self._failed: Exception | None = None
        self._full_since_ms: int | None = None
        self._last_error: str | None = None

    @property
    def is_behind(self) -> bool:
        """True while the log holds frames that the index does not show."""
        return self._index.state.end != self._log.end

    @property
    def index_is_damaged(self) -> bool:
        """True if the store stopped because SQLite found its file damaged: it must be folded again."""
        return isinstance(self._failed, DAMAGE)

    def facts(self) -> Facts:
        """Return where the store stands."""
        self._index.count()
        counters = self._index.counters
        return Facts(
            sequence=self._log.end.next_sequence - 1,
            generation=self._log.generation,
            log_bytes=self._log.end.offset,
            full_since_ms=self._full_since_ms,
            last_error=self._last_error,
            index_writes=counters.writes,
            index_bytes=counters.bytes,
            index_flushes=counters.flushes,
            waiting_pages=self._index.waiting_pages,
        )

    def catch_up(self, report: Report, is_stopped: Callable[[], bool] = lambda: False) -> int:
        """Fold what the index has not seen; return how many entries. Stops between two transactions when asked to."""
        folded = 0
        while self.is_behind and not is_stopped():
            with self._index.transaction():
                folded += self._fold(self._index.state.end.offset, REPLAY_ENTRIES)
            self._index.count()
            if self._index.waiting_pages >= CHECKPOINT_PAGES_BUSY:
                self._index.checkpoint()
            report(self._index.state.end.offset, self._log.end.offset)
        # Also where no entry was folded: the end of a state holds the last id.
        self._identifiers = Identifiers(self._clock, self._index.state.made.last_id or None)
        return folded

    def fold_at_once(self, report: Report, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Fold the whole log in one transaction, into an index that nobody uses yet; Stopping when asked to stop."""
        with self._index.transaction():
            while self.is_behind:
                if is_stopped():
                    raise Stopping("the daemon is stopping", retry_after_ms=BUSY_RETRY_MS)
                self._fold(self._index.state.end.offset, REPLAY_ENTRIES)
                report(self._index.state.end.offset, self._log.end.offset)

    @property
    def log(self) -> Log:
        """The log in use; for whoever prepares its next generation."""
        return self._log

    def adopt(self, log: Log, index: Index) -> tuple[Log, Index]:
        """Go on with another generation that says the same; return log and index of the one before, still open."""
        assert log.end.next_sequence >= self._log.end.next_sequence
        assert index.state.end == log.end
        before = self._log, self._index
        index.counters.writes += self._index.counters.writes
        index.counters.bytes_before += self._index.counters.bytes
        index.counters.flushes += self._index.counters.flushes
        self._log, self._index = log, index
        return before

    def _fold(self, offset: int, entries_max: int) -> int:
        """Apply whole frames from `offset` until `entries_max` entries are done; inside the caller's transaction."""
        state, folded = self._index.state, 0
        tail, end, checksum, made, store_id = state.tail, state.end, 0, state.made, state.store_id
        for frame in self._log.frames(offset):
            for place, events in self._codec.decode(frame):
                made = made.raised(self._apply(events, place))
                folded += 1
            if frame.header.is_end_of_state:
                through = self._codec.decode_through(frame)
                made, store_id = made.raised(through.made), through.store_id
            elif frame.offset == 0:
                store_id = identity(frame.payload)
            tail, end = Position(frame.offset, frame.header.sequence), frame.end
            checksum = frame.header.checksum
            if folded >= entries_max:
                break
        assert end != state.end, "the index does not stand at a frame of its log"
        self._index.move(tail, end, made, tail_checksum=checksum, store_id=store_id)
        return folded

    def commit(self, tickets: Sequence[Ticket]) -> list[Any]:
        """Make a batch durable and visible. Return one outcome a ticket, in order: its answer or a ConvmemError.

        Raises StoreFailed when nobody can know what is on the disk; every later call raises it too.
        """
        assert tickets
        self._refuse_if_failed()
        assert not self.is_behind
        try:
            outcomes = self._commit(tickets)
        except RetryError as refusal:
            return [refusal] * len(tickets)
        except Exception as error:
            self._failed, self._last_error = error, f"{type(error).__name__}: {error}"
            raise StoreFailed("the store stopped after a failure; whether this was saved is unknown") from error
        self._full_since_ms = None
        return outcomes

    def _commit(self, tickets: Sequence[Ticket]) -> list[Any]:
        before = self._log.end
        outcomes: list[Any] = []
        entries: list[Entry] = []
        origins: dict[Origin, int] = {}
        made = self._index.state.made
        try:
            self._index.begin()
            for command, origin in tickets:
                place = Place(before.next_sequence + len(entries), self._clock.now_ms(), origin)
                outcome, events, given = self._run(command, place, made.last_number + 1)
                outcomes.append(outcome)
                if events:
                    entries.append((place.at_ms, origins.setdefault(origin, len(origins)), events))
                    made = made.raised(given)
            frame = b""
            if entries:
                payload = self._codec.encode(list(origins), entries)
                frame = self._log.encoded(payload, len(entries))
                end = Position(before.offset + len(frame), before.next_sequence + len(entries))
                store_id = self._index.state.store_id if before.offset else identity(payload)
                self._index.move(before, end, made, tail_checksum=checksum_of(frame), store_id=store_id)
        except apsw.BusyError as error:
            self._index.rollback()
            raise Busy("another program has locked the index", retry_after_ms=BUSY_RETRY_MS) from error
        except (apsw.FullError, apsw.IOError) as error:
            self._index.rollback()
            raise self._full(error) from error
        if not entries:
            self._index.rollback()
            return outcomes
        self._write(before, frame, len(entries))
        self._show(before)
        return outcomes

    def _run(self, command: Command, place: Place, number: int) -> tuple[Any, Sequence[Event], Made]:
        """Decide and apply one command inside a savepoint: a refusal undoes itself and nothing else."""
        connection = self._index.connection
        connection.execute("SAVEPOINT command")
        try:
            stamp = Stamp(place, self._identifiers.next(place.at_ms), number)
            decided = self._deciders[type(command)](connection, command, stamp)
            made = self._apply(decided.events, place)
        except CallerError as refusal:
            connection.execute("ROLLBACK TO command")
            connection.execute("RELEASE command")
            return refusal, (), Made()
        connection.execute("RELEASE command")
        return decided.answer, decided.events, made

    def _apply(self, events: Sequence[Event], place: Place) -> Made:
        """Show events in the index; return what the store has given out in them."""
        for event in events:
            self._appliers[type(event)](self._index.connection, event, place)
        return self._maker.of(events)

    def _write(self, before: Position, frame: bytes, entry_count: int) -> None:
        """Append and sync one frame; on a full disk put everything back as it was."""
        try:
            self._log.write(frame, entry_count)
        except OSError as error:
            if error.errno not in NO_SPACE:
                raise
            self._log.cut_back(before)
            self._index.rollback()
            raise self._full(error) from error
        self._log.sync()

    def _show(self, before: Position) -> None:
        """COMMIT the index. If the disk refuses, nobody was told yet: the frame is taken back, durably."""
        try:
            self._index.commit()
        except (apsw.FullError, apsw.IOError) as error:
            self._log.cut_back(before)
            self._log.sync()
            self._index.rollback()
            raise self._full(error) from error

    def _full(self, error: Exception) -> StorageFull:
        self._last_error = f"{type(error).__name__}: {error}"
        if self._full_since_ms is None:
            self._full_since_ms = self._clock.now_ms()
        return StorageFull("the disk took no more; nothing was stored", retry_after_ms=STORAGE_FULL_RETRY_MS)

    def _refuse_if_failed(self) -> None:
        if self._failed is not None:
            raise StoreFailed("the store stopped after a failure; a restart will recover it") from self._failed

    def rest(self) -> Facts:
        """Do what is due when nobody waits: move pages from the WAL into the index file."""
        try:
            self._index.checkpoint()
        except (apsw.FullError, apsw.IOError) as error:
            self._full(error)
        return self.facts()

    def mark_damage(self, offset: int | None) -> None:
        """Remember damage that the scrub found, so that the next start looks at the whole log before it serves."""
        # A full disk keeps no mark; the scrub of the next start finds the damage again.
        with suppress(apsw.FullError, apsw.IOError):
            self._index.mark(is_clean=False, damage_offset=offset)

    def close(self) -> None:
        """Close log and index; a store that did not fail is marked as left in order."""
        if self._failed is None:
            # On a full disk the mark cannot be made; the next start then looks twice, which is right.
            with suppress(apsw.FullError, apsw.IOError):
                self._index.mark(is_clean=True, damage_offset=self._index.state.damage_offset)
        self._index.close()
        self._log.close()
