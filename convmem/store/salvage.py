"""Salvage: what can still be read of a damaged store goes into a fresh one; the damaged one is only read.

    index of the log's generation is whole   it is the base; the log's readable frames behind its end are added
    it is not                                the log's readable frames are folded, from the first on

The index comes first because it holds what stood in frames that are damaged now: it was shown only what was on the
disk. What cannot be added, since it speaks of what was lost, is left out, entry by entry. A deletion or a change that
stood in a lost part is lost too: the message is there again, as it was before.

Nothing of the damaged store is opened but for reading; its index is copied first (index_copy.py).
"""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw
import msgspec

from convmem.clock import Clock
from convmem.domain import Domain, Event, Place
from convmem.files import RealFiles
from convmem.store import index_copy, log
from convmem.store.codec import Codec
from convmem.store.compaction import live
from convmem.store.frame import BATCH, STATE
from convmem.store.generation import Draft
from convmem.store.log import Frame, Position
from convmem.store.shelf import FileShelf
from convmem.store.wreck import Gap, Wreck

Tell = Callable[[float, float, str], None]
UNREADABLE = "a whole frame whose entries cannot be read"


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
    """What a salvage found. `in_index` are gaps whose entries the index still had: nothing of them is lost."""

    generation: int | None = None
    has_log: bool = True
    used_index: bool = False
    frames: int = 0
    gaps: list[Gap] = field(default_factory=list)
    in_index: list[Gap] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    records: int = 0
    sequence: int = 0

    @property
    def is_whole(self) -> bool:
        """True if nothing is known to be lost."""
        return not (self.missing or self.left_out) and (self.used_index or self.has_log)


def salvage(source: RealFiles, target: RealFiles, domains: Sequence[Domain], clock: Clock, tell: Tell) -> Salvaged:
    """Make a store in `target`, which holds none, of what can be read in `source`, and say what that was.

    Raises LogTooNew before anything is written; OSError or apsw.Error where the disk of `target` takes no more.
    """
    found = Salvaged(has_log=source.exists(log.NAME))
    with ExitStack() as stack:
        wreck = None
        if found.has_log:
            file = source.open_to_read(log.NAME)
            stack.callback(file.close)
            wreck = Wreck(file)
            found.generation = wreck.generation()
        stack.callback(index_copy.drop, target)
        rescue = Rescue(source, target, domains, found, tell)
        stack.callback(rescue.close)
        if wreck is not None:
            rescue.read(wreck)
        rescue.write(Draft(target, FileShelf(target), domains, clock, rescue.next_generation))
    return found


class Rescue:
    """One salvage in progress: a scratch index that begins as a copy of the damaged store's, or with nothing."""

    def __init__(
        self, source: RealFiles, target: RealFiles, domains: Sequence[Domain], found: Salvaged, tell: Tell
    ) -> None:
        self._domains = domains
        self._found = found
        self._tell = tell
        self._codec = Codec(domains)
        self._appliers = {kind: apply for domain in domains for kind, apply in domain.appliers.items()}
        self._made_ids = {kind: made for domain in domains for kind, made in domain.made_ids.items()}
        self._last_id, self._end = "", Position(0, 1)
        known = found.generation
        for generation in sorted(FileShelf(source).generations(), reverse=True) if known is None else [known]:
            if (copied := index_copy.whole_copy(source, target, generation, domains)) is not None:
                self._connection, state = copied
                self._last_id, self._end = state.last_id, state.end
                found.generation, found.used_index = generation, True
                break
        else:
            index_copy.drop(target)
            self._connection = FileShelf(target).scratch()
            for domain in domains:
                self._connection.execute(domain.create)
        found.sequence = self._end.next_sequence - 1

    @property
    def next_generation(self) -> int:
        """The generation of the fresh log: another than that of the damaged one."""
        return (self._found.generation or 0) + 1

    def read(self, wreck: Wreck) -> None:
        """Add what the log says behind what the index has seen; of what stands before that, only look for gaps."""
        generation = self._found.generation or 0  # which no frame has
        seen = min(self._end.offset, wreck.size)
        before = wreck.pieces(generation, 0, seen, 0)
        self._found.in_index += [piece for piece in before if isinstance(piece, Gap)]
        is_behind_gap = is_in_state = False
        with self._connection:
            for piece in wreck.pieces(generation, seen, wreck.size, self._found.sequence + 1):
                self._tell(piece.offset, wreck.size, "reading the log")
                entries = self._entries(piece)
                if isinstance(piece, Frame) and entries is not None:
                    self._take(piece, entries, is_behind_gap=is_behind_gap)
                    is_in_state = piece.header.is_inside_state
                is_behind_gap = entries is None
        if is_behind_gap or is_in_state:
            self._found.missing.append(Missing(self._found.sequence + 1, None))

    def _entries(self, piece: Frame | Gap) -> list[tuple[Place, list[Event]]] | None:
        """What stands in a frame; None, and one gap more, if that cannot be told."""
        if isinstance(piece, Frame):
            try:
                if piece.header.is_end_of_state:
                    self._last_id = max(self._last_id, self._codec.decode_through(piece).last_id)
                return self._codec.decode(piece)
            except (msgspec.MsgspecError, AssertionError):
                piece = Gap(piece.offset, piece.header.frame_size, UNREADABLE)
        self._found.gaps.append(piece)
        return None

    def _take(self, frame: Frame, entries: list[tuple[Place, list[Event]]], *, is_behind_gap: bool) -> None:
        """Add the entries of a frame; what is missing before it is noted.

        A state leaves numbers out, and may have several records of one: there a gap alone says that something is lost.
        """
        header, last = frame.header, self._found.sequence
        first = header.next_sequence if header.is_end_of_state else header.sequence
        if first > last + 1 and (header.kind == BATCH or is_behind_gap):
            self._found.missing.append(Missing(last + 1, first - 1))
        elif header.kind == STATE and is_behind_gap:
            self._found.missing.append(Missing(max(last, 1), max(last, 1)))
        for place, events in entries:
            self._apply(place, events)
            last = place.sequence
        self._found.frames += 1
        self._found.sequence = max(last, first - 1)

    def _apply(self, place: Place, events: Sequence[Event]) -> None:
        made = [self._made_ids[type(event)](event) for event in events if type(event) in self._made_ids]
        self._last_id = max([self._last_id, *made])
        try:
            with self._connection:  # a savepoint: an entry is added whole or not at all
                for event in events:
                    self._appliers[type(event)](self._connection, event, place)
        except AssertionError as error:
            # Elsewhere a broken promise of ours; here its ground may have been lost with an earlier part of the log.
            self._found.left_out.append(LeftOut(place.sequence, str(error) or "it speaks of what is not there"))
        except apsw.ConstraintError:
            self._found.left_out.append(LeftOut(place.sequence, "it contradicts what is there"))

    def write(self, draft: Draft) -> None:
        """Write what lives now as a log with its index, and give it its name."""
        total = sum(domain.records(self._connection) for domain in self._domains)
        written = 0

        def told(count: int) -> None:
            nonlocal written
            written += count
            self._tell(min(written, total), total, "writing what was saved")

        is_done = False
        try:
            draft.keep(live(self._connection, self._domains), told)
            draft.end_state(self._found.sequence, self._last_id)
            draft.sync()
            draft.fold(lambda done, size: self._tell(done, size, "folding the index"), lambda: False)
            draft.name()
            draft.make_durable()
            is_done = True
        finally:
            if not is_done:
                draft.discard()
        assert draft.index is not None
        draft.index.close()
        draft.log.close()
        self._found.records = total

    def close(self) -> None:
        """Close the scratch index."""
        self._connection.close()
