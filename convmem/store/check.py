"""Walking all invariants: the log frame by frame from its first byte, and the index against a fresh fold of the log.

The same code serves the operator's `convmem check`, the scrub of a running daemon and the end of every store test. It
changes nothing and may run beside a daemon: the index says how far its log had come when the look was taken. What
stands behind that is judged as a start would judge it (recovery.py): whole frames in place are only not shown yet.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from typing import NamedTuple

import apsw
import msgspec

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.files import File
from convmem.store.codec import Codec
from convmem.store.frame import STATE, Fault, Header
from convmem.store.log import Log, Position, Reader
from convmem.store.made import Made, Maker
from convmem.store.recovery import DECISIONS, Decision, Facts
from convmem.store.sqlite import Index, State, connect, read_state, shape
from convmem.store.store import Store

Tell = Callable[[int, int, str], None]
VIOLATIONS_MAX = 100


def scrub(file: File, *, generation: int, end: int) -> Iterator[tuple[Position, str | None]]:
    """Verify the log up to byte `end`, yielding where each frame ends; at damage, where it is and a sentence, and
    stop.
    """
    position = Position(0, 1)
    for found in Reader(file, end=end).walk(0, generation):
        if isinstance(found, Fault):
            if found is not Fault.NONE:
                yield position, found.value
            return
        position = found.end
        yield position, None


class Found(NamedTuple):
    """What is wrong, and what the next start would cut off: one sentence each."""

    violations: list[str]
    torn: str | None = None


class Walk(NamedTuple):
    """How far a walk came: behind which frame, what stands there, where the index stands in the log (None: at no end
    of a frame), and what is wrong with the frame at `position` although it is whole.
    """

    position: Position
    before: Header | None
    fault: Fault
    shown: Position | None
    sentence: str | None = None


def check(
    file: File,
    connection: apsw.Connection | None,
    domains: Sequence[Domain],
    clock: Clock,
    tell: Tell = lambda done, total, sentence: None,
) -> list[str]:
    """Return what is wrong, one sentence each; empty if all is well. See look()."""
    return look(file, connection, domains, clock, tell).violations


def look(
    file: File,
    connection: apsw.Connection | None,
    domains: Sequence[Domain],
    clock: Clock,
    tell: Tell = lambda done, total, sentence: None,
) -> Found:
    """Walk the log to the end of its file, as a start would, and compare the index. What `tell` raises comes through,
    and sqlite.DAMAGE.

    `connection` is any connection to the index, to one moment of it; without one the log alone is checked.
    """
    state = None if connection is None else read_state(connection, shape(domains))
    if connection is not None and state is None:
        return Found(["the index is of another version; a start makes it anew"])
    size = file.size()
    if state is not None and state.end.offset > size:
        return Found([f"the log ends at byte {size}, but its index has seen {state.end.offset} bytes"])
    generation = state.generation if state is not None else generation_of(file)
    walk = _walk(file, generation, size, state, domains, tell)
    if walk.sentence is not None:
        return Found([walk.sentence])
    if walk.shown is None:
        if state is not None and walk.position.offset > state.end.offset:
            return Found([f"the index stands at byte {state.end.offset} of the log, where no frame ends"])
        return Found([_damage(walk)])
    violations = _rules(connection, domains) if connection is not None else []
    with closing(connect("")) as fresh:
        index = Index(fresh, domains, fresh_generation=generation)

        def fold(end: Position) -> None:
            log = Log(file, generation=generation, end=end)
            Store(log, index, domains, clock).catch_up(lambda done, total: tell(done, total, "folding the log"))

        try:
            fold(walk.position if connection is None else walk.shown)
            violations += differences(connection, fresh, tell) if connection is not None else _rules(fresh, domains)
            fold(walk.position)
        except (AssertionError, apsw.ConstraintError) as error:
            # An applier's promise does not hold: no fault of ours here, the entries contradict each other.
            where = index.state.end.next_sequence
            violations.append(f"the log cannot be folded, at entry {where} or soon behind it: {error}")
    broken, torn = _ending(file, generation, walk, size)
    return Found([*violations[:VIOLATIONS_MAX], *broken], torn)


def _ending(file: File, generation: int, walk: Walk, size: int) -> tuple[list[str], str | None]:
    """What a start would say of the bytes behind the last whole frame: refuse them, or cut them off.

    Looked at late and a second time: beside a daemon it may be a frame that is just being written, or taken back.
    """
    if walk.fault is Fault.NONE or file.size() != size:
        return [], None
    reader = Reader(file, end=size)
    if next(reader.walk(walk.position.offset, generation, walk.before)) is not walk.fault:
        return [], None
    header = reader.header(walk.position.offset)
    is_of_state = isinstance(header, Header) and header.kind == STATE
    is_of_state = is_of_state or (walk.before is not None and walk.before.is_inside_state)
    later = reader.has_frame_after(walk.position.offset)
    if DECISIONS[Facts(walk.fault, later, is_of_state)] is not Decision.CUT:
        return [_damage(walk)], None
    return [], f"the log, from byte {walk.position.offset} to {size}: {walk.fault.value}; the next start cuts it off"


def _damage(walk: Walk) -> str:
    return f"the log is damaged at byte {walk.position.offset}: {walk.fault.value}"


def generation_of(file: File) -> int:
    """The generation that the first header says; the first of all where none can be read."""
    first = Reader(file, end=file.size()).header(0)
    return first.generation if isinstance(first, Header) else 1


def _rules(connection: apsw.Connection, domains: Sequence[Domain]) -> list[str]:
    """What an index says of itself."""
    violations = [f"the index: {row[0]}" for row in connection.execute("PRAGMA quick_check(10)") if row[0] != "ok"]
    for domain in domains:
        violations += [f"{domain.name}: {sentence}" for sentence in domain.check(connection)]
    return violations


def _walk(file: File, generation: int, end: int, state: State | None, domains: Sequence[Domain], tell: Tell) -> Walk:
    """Verify the log up to byte `end`, its bytes and that ids made by the store rise from entry to entry."""
    codec = Codec(domains)
    maker = Maker(domains)
    position, before, made = Position(0, 1), None, Made()
    shown = position if state is None or state.end.offset == 0 else None
    for found in Reader(file, end=end).walk(0, generation):
        if isinstance(found, Fault):
            return Walk(position, before, found, shown)
        try:
            entries = codec.decode(found)
            made = made.raised(codec.decode_through(found).made) if found.header.is_end_of_state else made
        except (msgspec.MsgspecError, AssertionError) as error:
            sentence = f"the log holds a frame at byte {position.offset} that cannot be read: {error}"
            return Walk(position, before, Fault.NONE, shown, sentence)
        for place, events in entries:
            if min(maker.ids(events), default="~") <= made.last_id:
                sentence = f"the log: the id that entry {place.sequence} was given does not rise"
                return Walk(position, before, Fault.NONE, shown, sentence)
            is_new = not found.header.is_inside_state
            if is_new and min(maker.numbers(events), default=made.last_number + 1) <= made.last_number:
                sentence = f"the log: the number that entry {place.sequence} was given does not rise"
                return Walk(position, before, Fault.NONE, shown, sentence)
            made = made.raised(maker.of(events))
        position, before = found.end, found.header
        if state is not None and position.offset == state.end.offset:
            shown = position
        tell(position.offset, end, "reading the log")
    raise AssertionError("a walk ends with a fault")


def differences(
    left: apsw.Connection, right: apsw.Connection, tell: Tell = lambda done, total, sentence: None
) -> list[str]:
    """Compare two indexes table by table, row by row; the sentences name table and row number, never text."""
    listing = "SELECT name, sql FROM sqlite_schema WHERE name != 'store_state' ORDER BY name"
    if left.execute(listing).fetchall() != right.execute(listing).fetchall():
        return ["the index: its tables are not those of a fresh fold"]
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'store_state' ORDER BY name"
    found = []
    names = [str(table) for (table,) in left.execute(tables)]
    for done, table in enumerate(names):
        tell(done, len(names), "comparing the index")
        if (row := _first_difference(left, right, table)) is not None:
            found.append(f"the index: table {table} differs from the log in row {row}")
    columns = "next_sequence, end_offset, tail_offset, tail_checksum, last_id, last_number, store_id"
    where = f"SELECT {columns} FROM store_state"
    if left.execute(where).fetchall() != right.execute(where).fetchall():
        found.append("the index: its position differs from the log")
    return found


def _first_difference(left: apsw.Connection, right: apsw.Connection, table: str) -> int | None:
    width = len(left.execute(f'PRAGMA table_info("{table}")').fetchall())
    order = ", ".join(str(column + 1) for column in range(width))
    query = f'SELECT * FROM "{table}" ORDER BY {order}'
    theirs = right.execute(query)
    row = 0
    for row, ours in enumerate(left.execute(query), 1):
        if ours != next(theirs, None):
            return row
    return row + 1 if next(theirs, None) is not None else None
