"""Walking all invariants: the log frame by frame from its first byte, and the index against a fresh fold of the log.

The same code serves the operator's `convmem check`, the scrub of a running daemon and the end of every store test. It
changes nothing and may run beside a daemon: the index says how far its log had come when the look was taken.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import apsw
import msgspec

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.files import File
from convmem.store.codec import Codec
from convmem.store.frame import Fault, Header
from convmem.store.log import Log, Position, Reader
from convmem.store.sqlite import Index, connect, read_state, shape
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


def check(
    file: File,
    connection: apsw.Connection | None,
    domains: Sequence[Domain],
    clock: Clock,
    tell: Tell = lambda done, total, sentence: None,
) -> list[str]:
    """Return what is wrong, one sentence each; empty if all is well. What `tell` raises comes through.

    `connection` is any connection to the index, to one moment of it; without one the log alone is checked.
    """
    state = None if connection is None else read_state(connection, shape(domains))
    if connection is not None and state is None:
        return ["the index is of another version; a start makes it anew"]
    size = file.size()
    if state is not None and state.end.offset > size:
        return [f"the log ends at byte {size}, but its index has seen {state.end.offset} bytes"]
    generation, end = (state.generation, state.end.offset) if state is not None else (generation_of(file), size)
    position, damage = _walk(file, generation, end, domains, tell)
    if damage is not None:
        return [damage]
    violations = _rules(connection, domains) if connection is not None else []
    log = Log(file, generation=generation, end=position)
    with closing(connect("")) as fresh:
        index = Index(fresh, domains, fresh_generation=generation)
        try:
            Store(log, index, domains, clock).catch_up(lambda done, total: tell(done, total, "folding the log"))
        except (AssertionError, apsw.ConstraintError) as error:
            # An applier's promise does not hold: no fault of ours here, the entries contradict each other.
            where = index.state.end.next_sequence
            return [*violations, f"the log cannot be folded, at entry {where} or soon behind it: {error}"]
        if connection is not None:
            violations += differences(connection, fresh, tell)
        else:
            violations += _rules(fresh, domains)
    return violations[:VIOLATIONS_MAX]


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


def _walk(file: File, generation: int, end: int, domains: Sequence[Domain], tell: Tell) -> tuple[Position, str | None]:
    """Verify the log up to byte `end`, its bytes and that ids made by the store rise from entry to entry: where the
    walk ended, and what is wrong there.
    """
    codec = Codec(domains)
    made_ids = {kind: made for domain in domains for kind, made in domain.made_ids.items()}
    position, last_id = Position(0, 1), ""
    for found in Reader(file, end=end).walk(0, generation):
        if isinstance(found, Fault):
            is_good = found is Fault.NONE
            return position, None if is_good else f"the log is damaged at byte {position.offset}: {found.value}"
        try:
            entries = codec.decode(found)
            last_id = max(last_id, codec.decode_through(found).last_id) if found.header.is_end_of_state else last_id
        except (msgspec.MsgspecError, AssertionError) as error:
            return position, f"the log holds a frame at byte {position.offset} that cannot be read: {error}"
        for place, events in entries:
            made = [made_ids[type(event)](event) for event in events if type(event) in made_ids]
            if made and min(made) <= last_id:
                return position, f"the log: the id that entry {place.sequence} was given does not rise"
            last_id = max([last_id, *made])
        position = found.end
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
    where = "SELECT next_sequence, end_offset, last_id FROM store_state"
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
