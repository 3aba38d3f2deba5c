"""The reader pool: a few threads with read-only connections of their own, so that no reader waits for the writer.

A query sees one state of the index from its first row to its last (a read transaction), and every write that was
acknowledged before it began: a write is answered only after its COMMIT. When another generation takes over, queries
that run end on the old index; those that begin later see the new one.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import apsw

from convmem.errors import DiskFault
from convmem.limits import READERS

Result = TypeVar("Result")
Connect = Callable[[], apsw.Connection]


class Readers:
    """Runs queries on threads of its own. `connect` opens a read-only connection; called once a thread at most."""

    def __init__(self, connect: Connect) -> None:
        self._connect = connect
        self._threads = ThreadPoolExecutor(READERS, "convmem-reader")
        self._idle: list[tuple[Connect, apsw.Connection]] = []

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Return `query(connection, *arguments)`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, query, arguments)

    def _run(self, query: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        connect, connection = self._take()
        connection.execute("BEGIN")
        try:
            return query(connection, *arguments)
        finally:
            connection.execute("ROLLBACK")
            self._idle.append((connect, connection))
            self._close_stale()

    def _take(self) -> tuple[Connect, apsw.Connection]:
        """An idle connection to the index in use, or a new one. Lists give and take in one step (GIL).

        A new one counts only if its index is still in use once it is open: the files of the one before are removed, and
        what was opened of them in between need not be all of it.
        """
        while True:
            connect = self._connect
            try:
                known, connection = self._idle.pop()
            except IndexError:
                known = connect
                try:
                    connection = connect()
                except apsw.CantOpenError as error:
                    if connect is self._connect:
                        raise DiskFault("the index cannot be opened: is the data directory still there?") from error
                    continue
            if known is self._connect:
                return known, connection
            connection.close()

    def renew(self, connect: Connect) -> None:
        """From now on queries run on connections made by `connect`. May be called on any thread."""
        self._connect = connect
        self._close_stale()

    def _close_stale(self) -> None:
        """Close idle connections to an index that is not in use any more: they would keep its file alive."""
        for _ in range(len(self._idle)):
            try:
                connect, connection = self._idle.pop(0)
            except IndexError:
                return
            if connect is self._connect:
                self._idle.append((connect, connection))
            else:
                connection.close()

    def close(self) -> None:
        """Wait for the queries that run and close all connections."""
        self._threads.shutdown()
        for _, connection in self._idle:
            connection.close()
