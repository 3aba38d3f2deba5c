"""Questions to table files, each on a thread of its own and none for longer than it may.

A question to a table is the caller's: a filter over a million rows may take as long as it likes. So SQLite asks every
few thousand steps whether the time is over. A table's writer waits for none of them.

Rejected: the readers of the index (a slow question to a table would hold up every search).
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import apsw

from convmem.clock import Clock
from convmem.errors import QueryLimit, Stopping, StorageFault
from convmem.limits import BUSY_RETRY_MS, QUERY_MS_MAX, TABLE_READERS
from convmem.store import table_copy
from convmem.store.table_files import TableFiles
from convmem.store.table_store import UNREADABLE
from convmem.store.table_vacuum import rewrite

logger = logging.getLogger("convmem")

Result = TypeVar("Result")
# One step may be a whole comparison of long texts.
STEPS_BETWEEN_LOOKS = 50


class TableReading:
    """Reads table files for as long as a store is in use. `files` are those that the writer writes."""

    def __init__(self, files: TableFiles, clock: Clock, is_stopped: Callable[[], bool]) -> None:
        self.files = files
        self._clock = clock
        self._is_stopped = is_stopped
        self._threads = ThreadPoolExecutor(TABLE_READERS, "convmem-tables")

    async def read(self, paths: Sequence[Path], query: Callable[..., Result], *arguments: Any) -> Result:
        """Return `query(connection, *arguments)` (see TableReaders.read). QueryLimit if it takes too
        long, Stopping once the daemon stops."""
        loop = asyncio.get_running_loop()
        result: Result = await loop.run_in_executor(self._threads, self._read, paths, query, arguments)
        return result

    def _read(self, paths: Sequence[Path], query: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        self._refuse_if_stopped()
        result: Result = self.files.readers.read(paths, self._limited, query, arguments)
        return result

    def _refuse_if_stopped(self) -> None:
        if self._is_stopped():
            raise Stopping("the daemon is stopping", retry_after_ms=BUSY_RETRY_MS)

    def _limited(self, connection: apsw.Connection, query: Callable[..., Result], arguments: tuple[Any, ...]) -> Result:
        end_ms = self._clock.monotonic_ms() + QUERY_MS_MAX

        def is_over() -> bool:
            return self._is_stopped() or self._clock.monotonic_ms() > end_ms

        connection.set_progress_handler(is_over, STEPS_BETWEEN_LOOKS)
        try:
            return query(connection, *arguments)
        except apsw.InterruptError:
            self._refuse_if_stopped()
            raise QueryLimit(f"this took longer than {QUERY_MS_MAX} ms; ask for less", ms_max=QUERY_MS_MAX) from None
        except (apsw.SQLError, apsw.MismatchError, *UNREADABLE) as fault:
            logger.error("%s found what it does not understand in a table's file", query.__name__, exc_info=fault)
            raise StorageFault("the table's file holds something that is not understood") from None
        finally:
            connection.set_progress_handler(None)

    async def copy(self, source: Path, target: Path, is_stopped: Callable[[], bool]) -> int:
        """Copy a table file as it is at one moment (see table_copy.copy)."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, lambda: table_copy.copy(source, target, is_stopped=is_stopped))

    async def rewrite(
        self, path: Path, begin: Callable[[apsw.Connection], Callable[[], object]], is_stopped: Callable[[], bool]
    ) -> None:
        """Write a table file anew, beside the writer: who comes to this file meanwhile is told Busy (see
        table_vacuum.rewrite).
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, lambda: rewrite(path, begin, is_stopped=is_stopped))

    def close(self) -> None:
        """Wait for the questions that run, and close all files."""
        self._threads.shutdown()
        self.files.close()
