"""The reader pool: a few threads, each with its own read-only connection, so that no reader waits for the writer.

A query sees one state of the index from its first row to its last (a read transaction), and every write that was
acknowledged before it began: a write is answered only after its COMMIT.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

import apsw

from convmem.limits import READERS

Result = TypeVar("Result")


class Readers:
    """Runs queries on threads of its own. `connect` opens a read-only connection; called once a thread."""

    def __init__(self, connect: Callable[[], apsw.Connection]) -> None:
        self._connect = connect
        self._threads = ThreadPoolExecutor(READERS, "convmem-reader")
        self._local = threading.local()
        self._open: list[apsw.Connection] = []

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Return `query(connection, *arguments)`."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._run, query, arguments)

    def _run(self, query: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        connection: apsw.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._local.connection = self._connect()
            self._open.append(connection)
        connection.execute("BEGIN")
        try:
            return query(connection, *arguments)
        finally:
            connection.execute("ROLLBACK")

    def close(self) -> None:
        """Wait for the queries that run and close all connections."""
        self._threads.shutdown()
        for connection in self._open:
            connection.close()
