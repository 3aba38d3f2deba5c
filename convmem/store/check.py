"""Walking all invariants: the log frame by frame from its first byte, and the index against a fresh fold of the log.

The same code serves the operator's `convmem check`, the scrub of a running daemon and the end of every store test. It
changes nothing and may run beside a daemon: the index says how far its log had come when the look was taken.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import closing

import apsw

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.files import File
from convmem.store.frame import Fault
from convmem.store.log import Log, Position, Reader
from convmem.store.sqlite import Index, connect, read_state, shape
from convmem.store.store import Store

Report = Callable[[int, int], None]
VIOLATIONS_MAX = 100


def scrub(file: File, *, generation: int, end: int) -> Iterator[tuple[Position, str | None]]:
    """Verify the log up to byte `end`, yielding where each frame ends; at damage, where it is and a sentence, and
    stop.
    """
    reader = Reader(file, end=end)
    position = Position(0, 1)
    while position.offset < end:
        found = reader.frame(position.offset)
        if isinstance(found, Fault):
            yield position, found.value
            return
        if (found.header.generation, found.header.sequence) != (generation, position.next_sequence):
            yield position, Fault.OUT_OF_PLACE.value
            return
        position = found.end
        yield position, None


def check(
    file: File,
    connection: apsw.Connection,
    domains: Sequence[Domain],
    clock: Clock,
    report: Report = lambda done, total: None,
) -> list[str]:
    """Return what is wrong, one sentence each; empty if all is well. `connection` is any connection to the index."""
    state = read_state(connection, shape(domains))
    if state is None:
        return ["the index is of another version; a start makes it anew"]
    if state.end.offset > file.size():
        return [f"the log ends at byte {file.size()}, but its index has seen {state.end.offset} bytes"]
    position = Position(0, 1)
    for position, damage in scrub(file, generation=state.generation, end=state.end.offset):
        if damage is not None:
            return [f"the log is damaged at byte {position.offset}: {damage}"]
        report(position.offset, state.end.offset)
    violations = [f"the index: {row[0]}" for row in connection.execute("PRAGMA quick_check(10)") if row[0] != "ok"]
    for domain in domains:
        violations += [f"{domain.name}: {sentence}" for sentence in domain.check(connection)]
    log = Log(file, generation=state.generation, end=position)
    with closing(connect("")) as fresh:
        Store(log, Index(fresh, domains, fresh_generation=state.generation), domains, clock).catch_up(report)
        violations += differences(connection, fresh)
    return violations[:VIOLATIONS_MAX]


def differences(left: apsw.Connection, right: apsw.Connection) -> list[str]:
    """Compare two indexes table by table, row by row; the sentences name table and row number, never text."""
    listing = "SELECT name, sql FROM sqlite_schema WHERE name != 'store_state' ORDER BY name"
    if left.execute(listing).fetchall() != right.execute(listing).fetchall():
        return ["the index: its tables are not those of a fresh fold"]
    tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name != 'store_state' ORDER BY name"
    found = []
    for (table,) in left.execute(tables).fetchall():
        if (row := _first_difference(left, right, str(table))) is not None:
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
