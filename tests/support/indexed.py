"""The messages domain in memory with the tables of search beside it: fed on demand, partly, not at all, or damaged.

A connection of the readers sees both, the tables as schema `search`. So does this one: the indexer's connection, which
has the tables as its main schema, shares them with it.
"""

from collections.abc import Callable
from typing import Any, TypeVar
from uuid import uuid4

import apsw

from convmem.messages import DOMAIN, search_tables
from convmem.store.sqlite import DAMAGE
from tests.support.folded import Folded

Result = TypeVar("Result")


class Indexed(Folded):
    """A Folded whose connection has the tables of search attached. They know nothing until they are fed."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.connection = _memory(":memory:")
        self.connection.execute(DOMAIN.create)
        self.lose_tables()

    def lose_tables(self) -> None:
        """Begin with empty tables, as after the loss of their file."""
        if "search" in self.connection.db_names():
            self.connection.execute("DETACH search")
        name = f"file:/{uuid4()}?vfs=memdb"
        self.tables = _memory(name)
        self.tables.execute(search_tables.CREATE)
        self.connection.execute("ATTACH ? AS search", (name,))

    @property
    def watermark(self) -> int:
        """The change through which the tables know the messages."""
        return search_tables.read_watermark(self.tables)

    def feed(self, changes_max: int | None = None) -> None:
        """Let the tables follow the index, wholly or by about so many changes."""
        while changes_max is None or changes_max > 0:
            with self.connection:
                fed = search_tables.feed(self.tables, self.connection, lambda: None)
            if fed == 0:
                return
            changes_max = None if changes_max is None else changes_max - fed

    def damage(self) -> None:
        """Overwrite the pages of terms, but not what says where they are, nor the watermark."""
        for table in ("messages_word_data", "messages_gram_data"):
            self.tables.execute(f"UPDATE {table} SET block = zeroblob(length(block)) WHERE id > 10")

    async def search(self, query: Callable[..., Result], *arguments: Any) -> Result | None:
        """What the engine's readers do: without tables, or with damaged ones, there is no answer."""
        if "search" not in self.connection.db_names():
            return None
        try:
            return await self.read(query, *arguments)
        except (apsw.SQLError, *DAMAGE):
            return None


def _memory(name: str) -> apsw.Connection:
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI
    connection = apsw.Connection(name, flags=flags)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    return connection
