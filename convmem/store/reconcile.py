"""Two accounts of one state: what the readable frames of a damaged log come to, and what an index says that had seen
the lost ones too.

    in both, alike        taken
    in both, different    the index's if a change of the record may have stood in a lost part, else the log's
    in the index alone    taken if its entry could not be read whole, else left out
    in the log alone      left out if its deletion may have stood in a lost part, else taken
    behind the index      the log's

What a readable frame says wins, since its checksums hold and a row of an index has none; the index fills the gaps. For
that its records are put where the log lost them before what follows is applied: later entries speak of them. Whatever
the index says else is left out and counted. Records of one entry are compared together, kind by kind.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby

import msgspec

from convmem.domain import Event, Kept
from convmem.store.codec import Codec
from convmem.store.frame import BATCH, Header
from convmem.store.log import Frame
from convmem.store.sqlite import State
from convmem.store.wreck import Wreck

Kinds = Mapping[type[Event], Sequence[Kept]]


class Spans:
    """Sequences from one to another, both included; they come by rising beginnings."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._lasts: list[int] = []

    def add(self, first: int, last: int) -> None:
        """Add one more; nothing if it is empty."""
        if first <= last:
            self._firsts.append(first)
            # The furthest so far: what lies in between is in an earlier span.
            self._lasts.append(max(last, *self._lasts[-1:]) if self._lasts else last)

    def meet(self, first: int, last: int) -> bool:
        """True if any sequence from one to another is in here."""
        found = bisect_right(self._firsts, last)
        return found > 0 and self._lasts[found - 1] >= first


class Lost:
    """What the log does not say, of that which the index has seen. `filled` was taken from the index instead; of an
    entry in `partly` some may be there; behind an entry in `changes` a record may be another, or gone.
    """

    def __init__(self) -> None:
        self.filled = Spans()
        self.partly = Spans()
        self.changes = Spans()


def settled(log: Iterator[Kept], index: Iterator[Kept], lost: Lost, through: int) -> Iterator[Kept]:
    """The records to take, by rising sequence; the index has seen the log up to `through`."""
    for sequence, ours, theirs in _pairs(log, index):
        for kind in dict.fromkeys((*ours, *theirs)):
            yield from _settled(sequence, ours.get(kind, ()), theirs.get(kind, ()), lost, through)


def _settled(sequence: int, ours: Sequence[Kept], theirs: Sequence[Kept], lost: Lost, through: int) -> Sequence[Kept]:
    if ours == theirs or sequence > through:
        return ours
    if not theirs:
        return () if lost.changes.meet(sequence + 1, through) else ours
    if not ours:
        # One that was filled in and is not there any more was deleted by a frame that can be read.
        return theirs if lost.partly.meet(sequence, sequence) and not lost.filled.meet(sequence, sequence) else ()
    changed = max(getattr(kept.event, "changed_sequence", None) or sequence for kept in theirs)
    is_unknown = lost.filled.meet(sequence, sequence) or lost.partly.meet(sequence, sequence)
    return theirs if is_unknown or lost.changes.meet(sequence, changed) else ours


def differing(left: Iterator[Kept], right: Iterator[Kept], through: int) -> Iterator[int]:
    """The sequences up to `through` whose records are not the same."""
    for sequence, ours, theirs in _pairs(left, right):
        if sequence <= through and ours != theirs:
            yield sequence


def _pairs(left: Iterator[Kept], right: Iterator[Kept]) -> Iterator[tuple[int, Kinds, Kinds]]:
    """Every sequence of either, and what each has of it."""
    lefts, rights = _grouped(left), _grouped(right)
    ours, theirs = next(lefts, None), next(rights, None)
    while ours is not None or theirs is not None:
        sequence = min(group[0] for group in (ours, theirs) if group is not None)
        both: list[Kinds] = [{}, {}]
        if ours is not None and ours[0] == sequence:
            both[0], ours = ours[1], next(lefts, None)
        if theirs is not None and theirs[0] == sequence:
            both[1], theirs = theirs[1], next(rights, None)
        yield sequence, both[0], both[1]


def _grouped(records: Iterator[Kept]) -> Iterator[tuple[int, Kinds]]:
    for sequence, group in groupby(records, lambda kept: kept.sequence):
        kinds: dict[type[Event], list[Kept]] = defaultdict(list)
        for kept in group:
            kinds[type(kept.event)].append(kept)
        yield sequence, dict(kinds)


def is_of_log(wreck: Wreck, state: State, index: Iterator[Kept], codec: Codec) -> bool:
    """False if an index was folded from another log: another frame bears the sequence of the last one that it applied,
    or, where that one is lost, no entry was made when the index says.
    """
    if not state.end.offset:
        return True
    tail = wreck.header(state.tail.offset)
    if tail is not None and (is_its := _is_tail(tail, state)) is not None:
        return is_its
    alike = different = 0
    kept = next(index, None)
    for piece in wreck.pieces(state.generation, 0, wreck.size, 1):
        if not isinstance(piece, Frame):
            continue
        if (is_its := _is_tail(piece.header, state)) is not None:
            return is_its
        try:
            entries = codec.decode(piece)
        except (msgspec.MsgspecError, AssertionError):
            continue
        for place, _ in entries:
            while kept is not None and kept.sequence < place.sequence:
                kept = next(index, None)
            if kept is not None and kept.sequence == place.sequence:
                alike, different = alike + (kept.at_ms == place.at_ms), different + (kept.at_ms != place.at_ms)
    return alike > 0 or different == 0


def _is_tail(header: Header, state: State) -> bool | None:
    """True for the header of the last frame that an index applied, False for another in its place, None for any other.

    Frames of a state may share a sequence; only a batch has one of its own.
    """
    if (header.generation, header.sequence) != (state.generation, state.tail.next_sequence):
        return None
    if header.checksum == state.tail_checksum:
        return True
    return False if header.kind == BATCH else None
