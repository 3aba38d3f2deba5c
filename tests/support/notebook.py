"""A toy domain, so that tests of the store need no real one: numbered notes that can be added and struck out.

It refuses half-way on purpose: `Add` decides freely, but applying a note longer than NOTE_MAX raises Conflict, also
when earlier notes of the same command were applied already.
"""

from dataclasses import dataclass
from typing import Any

import apsw

from convmem.domain import Decided, Domain, Event, Place, Stamp
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


class Struck(Event, frozen=True, kw_only=True, tag="struck"):
    sequence: int


def add(connection: apsw.Connection, command: Add, stamp: Stamp) -> Decided:
    events = tuple(Added(note_id=stamp.ulid, note=note) for note in command.notes)
    return Decided({"note_id": stamp.ulid, "sequence": stamp.place.sequence}, events)


def strike(connection: apsw.Connection, command: Strike, stamp: Stamp) -> Decided:
    found = connection.execute("SELECT 1 FROM notes_note WHERE sequence = ?", (command.sequence,)).fetchone()
    if found is None:
        raise NotFound("no such note", sequence=command.sequence)
    return Decided({"sequence": stamp.place.sequence}, (Struck(sequence=command.sequence),))


def fall(connection: apsw.Connection, command: Break, stamp: Stamp) -> Decided:
    raise command.error


def added(connection: apsw.Connection, event: Added, place: Place) -> None:
    connection.execute(
        "INSERT INTO notes_note VALUES (?, ?, ?, ?, ?)",
        (event.note_id, place.sequence, place.at_ms, place.origin.device, event.note),
    )
    if len(event.note) > NOTE_MAX:
        raise Conflict("the note is too long")


def struck(connection: apsw.Connection, event: Struck, place: Place) -> None:
    connection.execute("DELETE FROM notes_note WHERE sequence = ?", (event.sequence,))


NOTEBOOK = Domain(
    name="notes",
    create=(
        "CREATE TABLE notes_note (note_id TEXT NOT NULL, sequence INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
        " device TEXT NOT NULL, note TEXT NOT NULL) STRICT"
    ),
    deciders={Add: add, Strike: strike, Break: fall},
    appliers={Added: added, Struck: struck},
    made_ids={Added: lambda event: event.note_id},
)


def notes(connection: apsw.Connection) -> list[tuple[int, str]]:
    """Return (sequence, note) of every note, in order."""
    rows: list[Any] = connection.execute("SELECT sequence, note FROM notes_note ORDER BY sequence, rowid").fetchall()
    return rows
