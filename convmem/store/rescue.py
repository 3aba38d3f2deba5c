"""What can still be read of a damaged store, as one state in a scratch index.

    the log's readable frames are folded, from the first on; an index of that log, if it is whole, fills the gaps in
    them as far as it has seen (reconcile.py)

What a readable frame says wins over the index, whose rows have no checksums. What cannot be added, since it speaks of
what was lost, is left out, entry by entry. A deletion or a change that stood in a lost part which no index has seen is
lost too: the message is there again, as it was before.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw
import msgspec

from convmem.domain import Domain, Event, Kept, Place
from convmem.files import RealFiles
from convmem.store import index_copy, reconcile
from convmem.store.codec import Codec
from convmem.store.compaction import live
from convmem.store.frame import BATCH, STATE, Header
from convmem.store.log import Frame
from convmem.store.made import Made, Maker
from convmem.store.shelf import SCRATCH, FileShelf
from convmem.store.sqlite import State, connect_to_build
from convmem.store.wreck import Gap, Wreck

Tell = Callable[[float, float, str], None]
UNREADABLE = "a whole frame whose entries cannot be read"
SETTLED = "staging-settled.db"


class Missing(NamedTuple):
    """Entries of which nothing was found; `last` is None where the end of the log is lost and nobody knows."""

    first: int
    last: int | None


class LeftOut(NamedTuple):
    """An entry that could be read and not be added, and why."""

    sequence: int
    reason: str


@dataclass
class Salvaged:
    """What a salvage found. `in_index` are gaps whose entries the index still had: nothing of them is lost. `torn` is
    an end of the log that nobody was ever told of. `disagreements` are entries of which the index says something else
    than what was saved.
    """

    generation: int | None = None
    has_log: bool = True
    used_index: bool = False
    frames: int = 0
    gaps: list[Gap] = field(default_factory=list)
    in_index: list[Gap] = field(default_factory=list)
    torn: Gap | None = None
    missing: list[Missing] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    disagreements: list[int] = field(default_factory=list)
    records: int = 0
    sequence: int = 0

    @property
    def is_whole(self) -> bool:
        """True if nothing is known to be lost, or in doubt."""
        return not (self.missing or self.left_out or self.disagreements) and (self.used_index or self.has_log)


class Rescue:
    """One salvage in progress: a scratch index that the log is folded into, and a copy of the damaged store's."""

    def __init__(
        self, source: RealFiles, target: RealFiles, domains: Sequence[Domain], found: Salvaged, tell: Tell
    ) -> None:
        self._source, self._target, self._domains = source, target, domains
        self._found = found
        self._tell = tell
        self._codec = Codec(domains)
        self._appliers = {kind: apply for domain in domains for kind, apply in domain.appliers.items()}
        self._maker = Maker(domains)
        self._connections: list[apsw.Connection] = []
        self._connection = self._scratch(SCRATCH)
        # The copied index, how far it had come, and its records that were not yet put where the log lost them.
        self._index: apsw.Connection | None = None
        self._state: State | None = None
        self._fillings: Iterator[Kept] = iter(())
        self._next_filling: Kept | None = None
        self._lost = reconcile.Lost()
        self._is_settled = True
        self._through = 0
        # Where in the log we are: the last sequence that was read, the frame before, and gaps behind it.
        self._last, self._made = 0, Made()
        self._before: Header | None = None
        self._pending: list[Gap] = []

    def _scratch(self, name: str) -> apsw.Connection:
        connection = connect_to_build(self._target.path(name))
        self._connections.append(connection)
        for domain in self._domains:
            connection.execute(domain.create)
        connection.execute("BEGIN")
        return connection

    def open_index(self, wreck: Wreck | None) -> None:
        """Take the index of the log's generation to help, if it is whole and was folded from this log."""
        known = self._found.generation
        for generation in sorted(FileShelf(self._source).generations(), reverse=True) if known is None else [known]:
            copied = index_copy.whole_copy(self._source, self._target, generation, self._domains)
            if copied is None:
                continue
            connection, state = copied
            self._connections.append(connection)
            if wreck is None or reconcile.is_of_log(wreck, state, live(connection, self._domains), self._codec):
                self._index, self._state, self._is_settled = connection, state, False
                self._through, self._made = state.end.next_sequence - 1, state.made
                self._fillings = live(connection, self._domains)
                self._next_filling = next(self._fillings, None)
                self._found.generation, self._found.used_index = generation, True
            return

    def read(self, wreck: Wreck | None) -> None:
        """Fold what the log says, with what the index says where it says nothing."""
        generation = self._found.generation or 0  # which no frame has
        for piece in wreck.pieces(generation, 0, wreck.size, 1) if wreck is not None else ():
            assert wreck is not None
            self._tell(piece.offset, wreck.size, "reading the log")
            entries = self._entries(piece)
            if isinstance(piece, Frame) and not isinstance(entries, Gap):
                self._take(piece, entries)
            elif isinstance(entries, Gap):
                self._pending.append(entries)
        self._end(wreck)
        self._found.sequence = max(self._last, self._through)

    def _entries(self, piece: Frame | Gap) -> list[tuple[Place, list[Event]]] | Gap:
        """What stands in a frame; a gap if that cannot be told."""
        if isinstance(piece, Gap):
            return piece
        try:
            if piece.header.is_end_of_state:
                self._made = self._made.raised(self._codec.decode_through(piece).made)
            return self._codec.decode(piece)
        except (msgspec.MsgspecError, AssertionError):
            return Gap(piece.offset, piece.header.frame_size, UNREADABLE)

    def _take(self, frame: Frame, entries: list[tuple[Place, list[Event]]]) -> None:
        """Add the entries of a frame; what is missing before it is noted, and filled in."""
        header = frame.header
        first = header.next_sequence if header.is_end_of_state else header.sequence
        self._pass_over(header, first)
        if header.sequence > self._through:
            self._settle()
        for place, events in entries:
            self._apply(place, events)
            self._last = place.sequence
        self._found.frames += 1
        self._last = max(self._last, first - 1)
        self._before = header

    def _pass_over(self, header: Header, first: int) -> None:
        """Note what is lost between the last frame and this one.

        A state leaves numbers out, and may have several records of one: there a gap alone says that something is lost.
        """
        last, is_behind_gap = self._last, bool(self._pending)
        missing = None
        if first > last + 1 and (header.kind == BATCH or is_behind_gap):
            missing = Missing(last + 1, first - 1)
        elif header.kind == STATE and is_behind_gap:
            missing = Missing(max(last, 1), max(last, 1))
        known = self._through if self._found.used_index else -1
        end = last if missing is None or missing.last is None else missing.last
        (self._found.in_index if end <= known else self._found.gaps).extend(self._pending)
        self._pending = []
        if missing is None:
            return
        if self._before is not None and self._before.is_inside_state and is_behind_gap:
            self._lost.partly.add(last, last)
        if first > last + 1:
            self._fill(last + 1, min(first - 1, self._through), is_state=header.kind == STATE)
        if header.is_inside_state:
            self._lost.partly.add(first, first)
        if end > self._through:
            self._found.missing.append(Missing(max(missing.first, self._through + 1), end))

    def _fill(self, first: int, last: int, *, is_state: bool) -> None:
        """Put in what the index has of entries that the log lost."""
        self._lost.filled.add(first, last)
        if not is_state:
            self._lost.changes.add(first, last)
        while (kept := self._next_filling) is not None and kept.sequence <= last:
            if kept.sequence >= first:
                self._apply(Place(kept.sequence, kept.at_ms, kept.origin), [kept.event])
            self._next_filling = next(self._fillings, None)

    def _end(self, wreck: Wreck | None) -> None:
        """What stands behind the last frame, and what the index has seen there."""
        last, pending, self._pending = self._last, self._pending, []
        # An index that was being folded may itself have stood within the state.
        state = self._state
        is_partial = state is not None and state.end.offset > 0 and state.tail.next_sequence == state.end.next_sequence
        is_ended = self._before is not None and not self._before.is_inside_state
        is_unknown = not is_ended and (is_partial or (self._before is not None and last > self._through))
        if self._found.used_index and last < self._through:
            self._fill(last + 1, self._through, is_state=False)
        self._settle()
        seen = state.end.offset if state is not None else 0
        for gap in pending:
            end = gap.offset + gap.size
            if end <= seen:
                self._found.in_index.append(gap)
            elif gap.offset == seen and seen and last == self._through and wreck and not wreck.has_frame(seen):
                self._found.torn = gap
            else:
                if gap.offset < seen:
                    self._found.in_index.append(gap._replace(size=seen - gap.offset))
                    gap = gap._replace(offset=seen, size=end - seen)
                self._found.gaps.append(gap)
                is_unknown = True
        if is_unknown:
            self._found.missing.append(Missing(max(last, self._through) + 1, None))

    def _settle(self) -> None:
        """Where the index had come to: let the two accounts agree, once; what follows is the log's alone."""
        if self._is_settled or self._index is None:
            return
        self._is_settled = True
        self._found.left_out.clear()
        folded, through = self._connection, self._through
        if next(reconcile.differing(self._live(folded), self._live(self._index), through), None) is None:
            return
        self._connection = self._scratch(SETTLED)
        for kept in reconcile.settled(self._live(folded), self._live(self._index), self._lost, through):
            self._apply(Place(kept.sequence, kept.at_ms, kept.origin), [kept.event])
        differing = reconcile.differing(self._live(self._connection), self._live(self._index), through)
        self._found.disagreements.extend(differing)

    def _live(self, connection: apsw.Connection) -> Iterator[Kept]:
        return live(connection, self._domains)

    def _apply(self, place: Place, events: Sequence[Event]) -> None:
        self._made = self._made.raised(self._maker.of(events))
        reason = None
        try:
            with self._connection:  # a savepoint: an entry is added whole or not at all
                for event in events:
                    self._appliers[type(event)](self._connection, event, place)
        except AssertionError as error:
            # Elsewhere a broken promise of ours; here its ground may have been lost with an earlier part of the log.
            reason = str(error) or "it speaks of what is not there"
        except apsw.ConstraintError:
            reason = "it contradicts what is there"
        if reason is not None:
            self._found.left_out.append(LeftOut(place.sequence, reason))
            if not self._is_settled:
                self._lost.partly.add(place.sequence, place.sequence)
                self._lost.changes.add(place.sequence, place.sequence)

    def records(self) -> Iterator[Kept]:
        """Every record that was saved, by rising sequence; `total` says how many."""
        return self._live(self._connection)

    @property
    def total(self) -> int:
        """How many records a file of them would hold."""
        return sum(domain.records(self._connection) for domain in self._domains)

    @property
    def made(self) -> Made:
        """What the store had given out, as far as is known."""
        return self._made

    def close(self) -> None:
        """Close the scratch index and the copy."""
        for connection in self._connections:
            connection.close(True)
