"""A database of th-memory-mcp and an export of it, told alike: as rows of tables, by the names of columns.

The idea: an export is the tables, with a few names in camel case. What is left of a damaged one are rows, and each says
by its columns of which table it is. An export is held in the memory as a whole: it is one object, and its texts are
short.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from hashlib import blake2s
from typing import Any, NamedTuple, Protocol

import msgspec

from convmem.importers import splitting
from convmem.importers.model import Notes
from convmem.importers.rows import Database, Group
from convmem.importers.sources import Source, Unreadable
from convmem.importers.splitting import decoded
from convmem.importers.times import at_ms

# What is read of each table.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "preferences": ("category", "key", "value", "confidence", "source", "updated_at"),
    "lessons": ("situation", "mistake", "correction", "created_at"),
    "profile": ("section", "content", "updated_at"),
    "interactions": ("id", "ts", "session_id", "kind", "content", "meta"),
    "memories": (
        *("id", "type", "content", "status", "importance", "project_id", "created_at", "updated_at", "valid_from"),
        "supersedes_id",
    ),
    "memory_links": ("source_memory_id", "relation", "target_memory_id"),
    "entities": ("name",),
    "relations": ("relation",),
}
# What a row must have to be one of a table, where nothing else says so; the first that fits.
MARKS: Mapping[str, frozenset[str]] = {
    "preferences": frozenset({"category", "key", "value"}),
    "lessons": frozenset({"situation", "mistake", "correction"}),
    "interactions": frozenset({"ts", "kind", "content"}),
    "memory_links": frozenset({"source_memory_id", "relation", "target_memory_id"}),
    "relations": frozenset({"source_entity_id", "relation"}),
    "entities": frozenset({"canonical_name", "name"}),
    "memories": frozenset({"type", "content"}),
    "profile": frozenset({"section", "content"}),
}
IN_SNAKE_CASE = {
    "memoryLinks": "memory_links",
    "sourceId": "source_memory_id",
    "targetId": "target_memory_id",
    "sourceMemoryId": "source_memory_id",
    "targetMemoryId": "target_memory_id",
    "sourceEntityId": "source_entity_id",
    "canonicalName": "canonical_name",
    "projectId": "project_id",
    "sessionId": "session_id",
    "supersedesId": "supersedes_id",
    "createdAt": "created_at",
    "updatedAt": "updated_at",
    "validFrom": "valid_from",
}
FORMAT = "th-memory-mcp"


class Row(NamedTuple):
    """A row and where it stands. What is asked for by name is None where it is missing or something else."""

    where: str
    values: dict[str, Any]

    def text(self, column: str) -> str | None:
        """A text that is not blank."""
        value = self.values.get(column)
        return value if isinstance(value, str) and value.strip() else None

    def number(self, column: str) -> float | None:
        """A number that can be counted with."""
        value = self.values.get(column)
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e18
        return value if is_number else None

    def name(self, column: str) -> str | None:
        """An id, which is a number or a text."""
        value = self.values.get(column)
        return str(value) if isinstance(value, int) and not isinstance(value, bool) else self.text(column)

    def at(self, *columns: str) -> int | None:
        """The first time that is one, in ms."""
        return next((at for at in (at_ms(self.values.get(column)) for column in columns) if at is not None), None)

    def fields(self, column: str) -> dict[str, Any]:
        """What a column of JSON holds; an export has it parsed."""
        value = self.values.get(column)
        try:
            found = decoded(value.encode(errors="replace")) if isinstance(value, str) else value
        except ValueError:
            return {}
        return found if isinstance(found, dict) else {}

    def json(self) -> str:
        """All of it as JSON."""
        return msgspec.json.encode(self.values).decode()


class Body(Protocol):
    """One memory."""

    name: str

    def rows(self, table: str) -> Iterator[Row]: ...

    def sessions(self) -> Iterator[Group]:
        """Interactions by their session: as it is named, how many, the time of the first."""
        ...

    def of_session(self, session: Any) -> Iterator[Row]: ...


class Tables:
    """A database."""

    def __init__(self, source: Source, notes: Notes) -> None:
        self.name = source.name
        self._database = Database(source, notes)

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table."""
        return self._rows(table, None)

    def sessions(self) -> Iterator[Group]:
        """Interactions by their session. One that never kept sessions has a single one."""
        if "session_id" in self._database.columns("interactions"):
            return self._database.groups("interactions", "session_id", "ts")
        times = [str(row.values.get("ts")) for row in self.rows("interactions")]
        return iter([Group(None, len(times), min(times))] if times else [])

    def of_session(self, session: Any) -> Iterator[Row]:
        """The interactions of a session."""
        is_kept = "session_id" in self._database.columns("interactions")
        return self._rows("interactions", {"session_id": session} if is_kept else None)

    def _rows(self, table: str, where: Mapping[str, Any] | None) -> Iterator[Row]:
        for count, row in enumerate(self._database.rows(table, COLUMNS[table], where), start=1):
            yield Row(f"{self.name}, table {table}, row {row.get('id', count)}", row)


class Export:
    """An export, or what is left of one."""

    def __init__(self, source: Source, notes: Notes) -> None:
        self.name = source.name
        self._tables: dict[str, list[Row]] = defaultdict(list)
        self._notes = notes
        try:
            with source.opened() as file:
                for found in splitting.objects(file, source.name, lambda value: bool(told_by(value)), notes):
                    self._take(found.value, f"{source.name}, byte {found.offset}")
        except Unreadable as error:
            notes.skip(source.name, str(error))

    def rows(self, table: str) -> Iterator[Row]:
        """The rows of a table."""
        return iter(self._tables[table])

    def sessions(self) -> Iterator[Group]:
        """Interactions by their session."""
        for session, rows in self._by_session.items():
            yield Group(session, len(rows), min(str(row.values.get("ts")) for row in rows))

    def of_session(self, session: Any) -> Iterator[Row]:
        """The interactions of a session."""
        return iter(self._by_session.get(session, ()))

    @cached_property
    def _by_session(self) -> dict[Any, list[Row]]:
        sessions: dict[Any, list[Row]] = defaultdict(list)
        for row in self._tables["interactions"]:
            session = row.values.get("session_id")
            sessions[session if isinstance(session, str) else None].append(row)
        return sessions

    def _take(self, value: Any, where: str) -> None:
        kind = told_by(value)
        if kind is None:
            self._notes.skip(where, "it is nothing of an export")
        elif kind != FORMAT:
            self._add(kind, value, where)
        else:
            for name, rows in _lists(value):
                for count, row in enumerate(rows, start=1):
                    self._add(name, row, f"{self.name}, {name} {count}")

    def _add(self, table: str, row: Any, where: str) -> None:
        if isinstance(row, dict):
            self._tables[table].append(
                Row(where, {IN_SNAKE_CASE.get(name, str(name)): value for name, value in row.items()})
            )
        else:
            self._notes.skip(where, "it is no object")


def told_by(value: Any) -> str | None:
    """What an object of an export is: FORMAT if it holds whole tables, else the table of which it is a row."""
    if not isinstance(value, dict):
        return None
    names = {IN_SNAKE_CASE.get(name, name) for name in value}
    for table, marks in MARKS.items():
        if marks <= names:
            return table
    return FORMAT if any(True for _ in _lists(value)) else None


def _lists(value: Mapping[str, Any]) -> Iterator[tuple[str, list[Any]]]:
    """The tables in an object. Interactions are inside of one more, which stands alone where what is around it is
    damaged.
    """
    for name, rows in value.items():
        table = IN_SNAKE_CASE.get(name, name)
        if table == "interactions" and isinstance(rows, dict):
            rows = rows.get("rows")
        elif table == "rows" and "included" in value:
            table = "interactions"
        if table in COLUMNS and isinstance(rows, list):
            yield table, rows


def by_id(rows: Iterable[Row]) -> dict[str, Row]:
    """Rows by their ids, of two with one id the last. One without an id goes by what it says."""
    return {row.name("id") or _digest(row): row for row in rows}


def _digest(row: Row) -> str:
    said = "\0".join(row.text(column) or "" for column in ("type", "kind", "ts", "content"))
    return blake2s(said.encode(errors="replace"), digest_size=8).hexdigest()


def dated(name: str, at: int | None) -> str:
    """An id together with its time: ids count up from 1 in each store, and a person has one on each device."""
    return name if at is None else f"{name}@{at}"
