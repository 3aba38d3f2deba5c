"""What to do with a log that does not end cleanly: a table of facts and decisions.

    fault          what stands where a frame should begin (store/frame.py)
    later          a whole frame stands behind it: a crash hurts only the end, so this is damage
    witnessed      the index had applied what is damaged or missing. Its COMMIT follows the log's sync, so that may have
                   been acknowledged, and cutting would lose it without a word. Likewise the state that a generation
                   opens with: the file got its name only when that was on the disk

Cut off are only tails that nobody was told about: short, zero-filled, or with sectors written out of order. The cut
bytes are kept in a side file. Rejected: cutting whatever cannot be read (loses acknowledged messages after bit rot)
and refusing whatever cannot be read (every power cut would need a person).
"""

from dataclasses import dataclass
from enum import Enum
from itertools import count
from typing import NamedTuple

from convmem.errors import LogCorrupt, LogTooNew
from convmem.files import File, Files
from convmem.limits import MIB
from convmem.store import log
from convmem.store.frame import HEADER_SIZE, STATE, Fault, Header, decode_header
from convmem.store.log import Log, Position, Reader


class Decision(Enum):
    """What a start does about it."""

    KEEP = "keep"
    CUT = "cut"
    REFUSE = "refuse"
    TOO_NEW = "too new"


class Facts(NamedTuple):
    """The three columns that decide."""

    fault: Fault
    later: bool
    witnessed: bool


TORN = (Fault.SHORT_HEADER, Fault.BAD_HEADER, Fault.SHORT_PAYLOAD, Fault.BAD_PAYLOAD)
DECISIONS: dict[Facts, Decision] = {
    Facts(Fault.NONE, later=False, witnessed=False): Decision.KEEP,
    Facts(Fault.NONE, later=False, witnessed=True): Decision.REFUSE,
    Facts(Fault.STATE_NOT_ENDED, later=False, witnessed=True): Decision.REFUSE,
    **{Facts(fault, later=False, witnessed=False): Decision.CUT for fault in TORN},
    **{Facts(fault, later=False, witnessed=True): Decision.REFUSE for fault in TORN},
    # A header is short only at the very end of the file: nothing can be behind it.
    **{Facts(fault, True, witnessed): Decision.REFUSE for fault in TORN[1:] for witnessed in (False, True)},
    **{
        Facts(Fault.OUT_OF_PLACE, later, witnessed): Decision.REFUSE
        for later in (False, True)
        for witnessed in (False, True)
    },
    **{
        Facts(Fault.TOO_NEW, later, witnessed): Decision.TOO_NEW
        for later in (False, True)
        for witnessed in (False, True)
    },
}


@dataclass(frozen=True)
class Witness:
    """What the index says of the log it was folded from: `tail` is where the last applied frame begins, `end` where
    it ends.
    """

    generation: int
    tail: Position
    end: Position
    tail_checksum: int = 0

    def has_seen(self, offset: int) -> bool:
        """True if bytes from `offset` on were shown in the index."""
        return offset < self.end.offset


@dataclass(frozen=True)
class Report:
    """What recovery did at this start; shown in health. `index` says what became of the index that was found."""

    bytes_cut: int = 0
    side_file: str | None = None
    fault: str | None = None
    index: str = "kept"
    entries_replayed: int = 0


class Judgement(NamedTuple):
    """What a start would do about a log, and where its last whole frame ends. Nothing has been done yet."""

    decision: Decision
    generation: int
    end: Position
    fault: Fault
    size: int

    def error(self) -> LogCorrupt | LogTooNew:
        """What a start is refused with."""
        place = self.end.offset
        if self.decision is Decision.TOO_NEW:
            sentence = f"{log.NAME} was written by a newer convmem (byte {place}): run that one"
            return LogTooNew(sentence, file=log.NAME, offset=place)
        assert self.decision is Decision.REFUSE
        what = "acknowledged entries are missing" if self.fault is Fault.NONE else self.fault.value
        sequence = self.end.next_sequence
        sentence = f"{log.NAME}, byte {place}, entry {sequence}: {what}; nothing was changed"
        return LogCorrupt(sentence, file=log.NAME, offset=place, sequence=sequence)


def judge(file: File, witness: Witness | None, *, from_start: bool = False) -> Judgement:
    """Walk a log to its end as a start does, and decide. Changes nothing.

    With a witness of this generation the walk begins at the last frame that it applied, else (and with `from_start`)
    at the first frame.
    """
    size = file.size()
    reader = Reader(file, end=size)
    first = reader.header(0)
    # An empty or unreadable beginning leaves the witness's word, or the first generation.
    generation = first.generation if isinstance(first, Header) else witness.generation if witness else 1
    known = witness if witness is not None and witness.generation == generation else None
    end, fault, is_inside_state = _walk(reader, generation, None if from_start else known, size)
    witnessed = is_inside_state or (known is not None and known.has_seen(end.offset))
    later = fault is not Fault.NONE and reader.has_frame_after(end.offset)
    return Judgement(DECISIONS[Facts(fault, later, witnessed)], generation, end, fault, size)


def recover(files: Files, witness: Witness | None, *, from_start: bool = False) -> tuple[Log, Report]:
    """Open the log at its last whole frame, as judge() says. Raises LogCorrupt or LogTooNew; changes nothing then."""
    if witness is not None and witness.has_seen(0) and not files.exists(log.NAME):
        sentence = f"{log.NAME} is missing, but its index is there: put the log back, or remove the index to start anew"
        raise LogCorrupt(sentence, file=log.NAME, offset=0, sequence=1)
    file = files.open(log.NAME)
    judged = judge(file, witness, from_start=from_start)
    generation, end, fault = judged.generation, judged.end, judged.fault
    match judged.decision:
        case Decision.TOO_NEW | Decision.REFUSE:
            file.close()
            raise judged.error()
        case Decision.CUT:
            size = judged.size
            report = Report(size - end.offset, _set_aside(files, file, generation, end.offset, size), fault.value)
            file.truncate(end.offset)
            file.sync()
        case Decision.KEEP:
            report = Report()
    return Log(file, generation=generation, end=end), report


def is_of_this_log(files: Files, witness: Witness) -> bool:
    """False if another whole header stands where the last applied frame begins: the index is that of another log.

    Anything else there is for recovery to judge: a log that was damaged or cut is not another one.
    """
    if not witness.has_seen(0) or not files.exists(log.NAME):
        return True
    file = files.open_to_read(log.NAME)
    try:
        found = decode_header(file.read(witness.tail.offset, HEADER_SIZE))
    finally:
        file.close()
    return isinstance(found, Fault) or found.checksum == witness.tail_checksum


def generation_of(files: Files) -> int | None:
    """The generation that the first header of the log says; None where there is none that can be read."""
    if not files.exists(log.NAME):
        return None
    file = files.open_to_read(log.NAME)
    try:
        first = Reader(file, end=file.size()).header(0)
    finally:
        file.close()
    return first.generation if isinstance(first, Header) else None


def _walk(reader: Reader, generation: int, known: Witness | None, size: int) -> tuple[Position, Fault, bool]:
    """Go from frame to frame; return where the last good one ends, what stands there, and whether that is of the state
    that the log opens with.
    """
    end, before = Position(0, 1), None
    if known is not None and known.has_seen(0):
        if known.tail.offset > size:
            return Position(size, known.tail.next_sequence), Fault.NONE, False
        end = known.tail
        tail = reader.frame(end.offset)
        if isinstance(tail, Fault):
            return end, tail, False
        if tail.end != known.end or tail.header.generation != generation:
            return end, Fault.OUT_OF_PLACE, False
        end, before = tail.end, tail.header
    for found in reader.walk(end.offset, generation, before):
        if isinstance(found, Fault):
            torn = reader.header(end.offset)
            is_state = isinstance(torn, Header) and torn.kind == STATE
            return end, found, is_state or (before is not None and before.is_inside_state)
        end, before = found.end, found.header
    raise AssertionError("a walk ends with a fault")


def _set_aside(files: Files, file: File, generation: int, offset: int, size: int) -> str:
    """Copy the tail that is about to be cut into a file of its own, durably; return its name."""
    names = (f"cut-{generation}-{offset}-{number}.tail" for number in count(1))
    name = next(name for name in names if not files.exists(name))
    side = files.open(name)
    for at in range(offset, size, MIB):
        side.write(at - offset, file.read(at, min(MIB, size - at)))
    side.sync()
    side.close()
    return name
