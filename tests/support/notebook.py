"""A toy domain, so that tests of the store need no real one: numbered notes that can be added and struck out.

Like a real domain it can be compacted: notes that were struck out are waste, the others are live. It refuses half-way
on purpose: `Add` decides freely, but applying a note longer than NOTE_MAX raises Conflict, also when earlier notes of
the same command were applied already.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import apsw

from convmem.domain import Decided, Domain, Event, Kept, Origin, Place, Stamp, Waste
from convmem.errors import Conflict, NotFound

NOTE_MAX = 2_000


@dataclass(frozen=True)
class Add:
    """Add notes, all or none."""

    notes: tuple[str, ...]

    @property
    def size_bytes(self) -> int:
        return 100 + sum(map(len, self.notes))


@dataclass(frozen=True)
class Strike:
    """Strike out the note with this sequence."""

    sequence: int

    @property
    def size_bytes(self) -> int:
        return 100


@dataclass(frozen=True)
class Break:
    """A command that meets a fault of ours: deciding raises what it carries."""

    error: BaseException

    @property
    def size_bytes(self) -> int:
        return 100


class Added(Event, frozen=True, kw_only=True, tag="added"):
    note_id: str
    note: str
    number: int = 0


class Struck(Event, frozen=True, kw_only=True, tag="struck"):
    sequence: int


class AddedKept(Event, frozen=True, kw_only=True, tag="added_kept"):
    note_id: str
    note: str
    number: int = 0


def add(connection: apsw.Connection, command: Add, stamp: Stamp) -> Decided:
    events = tuple(
        Added(note_id=stamp.ulid, note=note, number=0 if place else stamp.number)
        for place, note in enumerate(command.notes)
    )
    return Decided({"note_id": stamp.ulid, "sequence": stamp.place.sequence, "number": stamp.number}, events)


def strike(connection: apsw.Connection, command: Strike, stamp: Stamp) -> Decided:
    found = connection.execute("SELECT 1 FROM notes_note WHERE sequence = ?", (command.sequence,)).fetchone()
    if found is None:
        raise NotFound("no such note", sequence=command.sequence)
    return Decided({"sequence": stamp.place.sequence}, (Struck(sequence=command.sequence),))


def fall(connection: apsw.Connection, command: Break, stamp: Stamp) -> Decided:
    raise command.error


def added(connection: apsw.Connection, event: Added, place: Place) -> None:
    connection.execute(
        "INSERT INTO notes_note VALUES (?, ?, ?, ?, ?, ?)",
        (event.note_id, place.sequence, place.at_ms, place.origin.device, event.note, event.number),
    )
    if len(event.note) > NOTE_MAX:
        raise Conflict("the note is too long")


def struck(connection: apsw.Connection, event: Struck, place: Place) -> None:
    connection.execute("DELETE FROM notes_note WHERE sequence = ?", (event.sequence,))
    connection.execute("UPDATE notes_total SET struck = struck + 1")


def added_kept(connection: apsw.Connection, event: AddedKept, place: Place) -> None:
    added(connection, Added(note_id=event.note_id, note=event.note, number=event.number), place)


def live(connection: apsw.Connection) -> Iterator[Kept]:
    """Every note as its state event; of the origin the index knows the device alone."""
    rows: Any = connection.execute(
        "SELECT sequence, at_ms, device, note_id, note, number FROM notes_note ORDER BY sequence, rowid"
    )
    for sequence, at_ms, device, note_id, note, number in rows:
        yield Kept(sequence, at_ms, Origin(device, ""), AddedKept(note_id=note_id, note=note, number=number))


def records(connection: apsw.Connection) -> int:
    found: Any = connection.execute("SELECT count(*) FROM notes_note").fetchone()
    return int(found[0])


def waste(connection: apsw.Connection) -> Waste:
    found: Any = connection.execute("SELECT struck FROM notes_total").fetchone()
    return Waste(deleted=int(found[0]))


NOTEBOOK = Domain(
    name="notes",
    create=(
        "CREATE TABLE notes_note (note_id TEXT NOT NULL, sequence INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
        " device TEXT NOT NULL, note TEXT NOT NULL, number INTEGER NOT NULL) STRICT;"
        "CREATE TABLE notes_total (struck INTEGER NOT NULL) STRICT;"
        "INSERT INTO notes_total VALUES (0)"
    ),
    deciders={Add: add, Strike: strike, Break: fall},
    appliers={Added: added, Struck: struck, AddedKept: added_kept},
    made_ids={Added: lambda event: event.note_id},
    made_numbers={Added: lambda event: event.number, AddedKept: lambda event: event.number},
    live=live,
    records=records,
    waste=waste,
)


def notes(connection: apsw.Connection) -> list[tuple[int, str]]:
    """Return (sequence, note) of every note, in order."""
    rows: list[Any] = connection.execute("SELECT sequence, note FROM notes_note ORDER BY sequence, rowid").fetchall()
    return rows
