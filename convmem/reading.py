"""How the engine reads: which files the readers' connections see now, and long looks on a connection of their own.

A connection sees the index of one generation, and beside it, if the indexer has some to offer, its tables of search.
Both can be replaced while queries run: those end on what they began with.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

import apsw

from convmem.files import RealFiles
from convmem.store import sqlite
from convmem.store.readers import Readers
from convmem.store.shelf import index_name, search_name

Result = TypeVar("Result")
SEARCH = "search"


@dataclass(frozen=True)
class Sight:
    """What a connection of the readers sees."""

    generation: int
    has_search: bool


class Reading:
    """The readers of one store. What renew() and offer() are told, on any thread, counts for every later query."""

    def __init__(self, files: RealFiles, generation: int, doubt: Callable[[int, str], None]) -> None:
        """`doubt(generation, why)` is told when tables of search that should be there cannot be used."""
        self._files = files
        self._doubt = doubt
        self._lock = threading.Lock()
        self._sight = Sight(generation, has_search=False)
        self.readers = Readers(self._connect(self._sight))

    @property
    def has_search(self) -> bool:
        """True while queries see tables of search."""
        return self._sight.has_search

    def renew(self, generation: int, *, has_search: bool) -> None:
        """Let queries that begin from now on see another generation."""
        with self._lock:
            self._see(Sight(generation, has_search))

    def offer(self, generation: int, *, has_search: bool) -> None:
        """Let queries see the tables of search of a generation, or do without, unless another has taken over."""
        with self._lock:
            if self._sight.generation == generation:
                self._see(Sight(generation, has_search))

    def _see(self, sight: Sight) -> None:
        self._sight = sight
        self.readers.renew(self._connect(sight))

    def _connect(self, sight: Sight) -> Callable[[], apsw.Connection]:
        index = self._files.path(index_name(sight.generation))
        search = self._files.path(search_name(sight.generation))

        def connect() -> apsw.Connection:
            connection = sqlite.connect_to_read(index)
            if sight.has_search:
                try:
                    sqlite.attach_search(connection, search)
                except apsw.CantOpenError:
                    self._doubt(sight.generation, "missing")
                except (apsw.SQLError, *sqlite.DAMAGE):
                    self._doubt(sight.generation, "damaged")
            return connection

        return connect

    async def search(self, query: Callable[..., Result], *arguments: Any) -> Result | None:
        """Run a query on a connection that sees tables of search; None if there are none, or they are damaged."""
        if not self._sight.has_search:
            return None
        return await self.readers.read(self._searched, self._sight.generation, query, arguments)

    def _searched(
        self, connection: apsw.Connection, generation: int, query: Callable[..., Result], arguments: tuple[Any, ...]
    ) -> Result | None:
        if SEARCH not in connection.db_names():
            return None
        try:
            return query(connection, *arguments)
        except (apsw.SQLError, *sqlite.DAMAGE):
            # If it is the index that is damaged, whoever searches without these tables will meet it.
            self._doubt(generation, "damaged")
            return None

    def snapshot(self, generation_in_use: Callable[[], int]) -> apsw.Connection:
        """A connection of the caller's own that sees one moment of the index, without tables of search."""
        while True:
            generation = generation_in_use()
            try:
                connection = self._connect(Sight(generation, has_search=False))()
            except apsw.CantOpenError:
                if generation == generation_in_use():
                    raise
                continue  # another generation took over between the two lines
            sqlite.hold_moment(connection)
            if generation == generation_in_use():
                return connection
            connection.close()  # its files were removed while they were opened: not all of them need have been there

    def close(self) -> None:
        """Wait for the queries that run and close all connections."""
        self.readers.close()
