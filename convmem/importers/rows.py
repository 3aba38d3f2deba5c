"""Rows of another program's database, by the names of their columns, whatever is missing, odd or damaged there.

The idea: one copy of a database serves everything that is read from it, and goes away with the last that holds it. An
entry may be read long after it was found, and a copy of its own for each would write gigabytes again and again.

A table or a column that is not there has no values; what its columns hold is told as it is. Text comes out as text also
where its bytes are no UTF-8, and so does a blob, since JSON is kept in either.
"""

import weakref
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import Any, NamedTuple

import apsw

from convmem.importers.model import Notes
from convmem.importers.sources import Source, Unreadable


class Group(NamedTuple):
    """Rows with one value in a column: the value, how many they are, and the least of another column."""

    key: Any
    size: int
    least: Any


class Database:
    """One source that is a database. What cannot be read of it goes to the notes."""

    def __init__(self, source: Source, notes: Notes) -> None:
        self.name = source.name
        self._source = source
        self._notes = notes

    def columns(self, table: str) -> frozenset[str]:
        """The names of a table's columns; none if there is no such table, or nothing can be read."""
        return self._tables.get(table, frozenset())

    def rows(
        self, table: str, columns: tuple[str, ...], where: Mapping[str, Any] | None = None
    ) -> Iterator[dict[str, Any]]:
        """The rows of a table, each with those of the columns that are there; all, or those with the given values."""
        there = self.columns(table)
        asked = [column for column in columns if column in there]
        where = where or {}
        if not asked or not where.keys() <= there:
            return
        condition = " AND ".join(f'"{column}" IS ?' for column in where) or "true"
        sql = f'SELECT {", ".join(map(_as_bytes, asked))} FROM "{table}" WHERE {condition}'
        for row in self._told(table, sql, tuple(where.values())):
            yield dict(zip(asked, row, strict=True))

    def groups(self, table: str, key: str, least: str) -> Iterator[Group]:
        """The rows of a table by the values of one column."""
        there = self.columns(table)
        if key in there:
            second = f'min("{least}")' if least in there else "NULL"
            sql = f'SELECT {_as_bytes(key)}, count(*), {second} FROM "{table}" GROUP BY "{key}"'
            yield from (Group(*row) for row in self._told(table, sql, ()))

    def _told(self, table: str, sql: str, values: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        """Rows as far as they can be read."""
        connection = self._connection
        if connection is None:
            return
        try:
            for row in connection.execute(sql, values):
                yield tuple(value.decode(errors="replace") if isinstance(value, bytes) else value for value in row)
        except (apsw.Error, UnicodeError) as error:
            self._notes.skip(f"{self.name}, table {table}", f"the rest of it cannot be read: {error}")

    @cached_property
    def _tables(self) -> Mapping[str, frozenset[str]]:
        connection = self._connection
        if connection is None:
            return {}
        names = "SELECT name FROM sqlite_schema WHERE type = 'table'"
        columns = "SELECT name FROM pragma_table_info(?)"
        try:
            return {
                str(table): frozenset(str(name) for (name,) in connection.execute(columns, (table,)))
                for (table,) in connection.execute(names).fetchall()
            }
        except (apsw.Error, UnicodeError) as error:
            self._notes.skip(self.name, f"its tables cannot be read: {error}")
            return {}

    @cached_property
    def _connection(self) -> apsw.Connection | None:
        with ExitStack() as stack:
            try:
                connection = stack.enter_context(self._source.database())
            except (Unreadable, apsw.Error) as error:
                self._notes.skip(self.name, str(error))
                return None
            weakref.finalize(self, stack.pop_all().close)
            return connection


def _as_bytes(column: str) -> str:
    """A column's value with its text as bytes: SQLite keeps any bytes as text, Python takes UTF-8 alone."""
    return f'CASE typeof("{column}") WHEN \'text\' THEN CAST("{column}" AS BLOB) ELSE "{column}" END'
