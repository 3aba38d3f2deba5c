"""Access, for real: what a tool is handed, on behalf of one caller.

Writes go to the writer's mailbox, reads to the reader pool; both wait until the engine is ready or say why it is not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from convmem.domain import Command, Origin
from convmem.errors import Busy, StoreFailed
from convmem.limits import REBUILD_RETRY_MS
from convmem.store.writer import Writer

if TYPE_CHECKING:
    from convmem.engine import Engine

Result = TypeVar("Result")
Progress = Callable[[float, float, str], Awaitable[None]]


class StoreAccess:
    """Access, for real: writes go to the writer's mailbox, reads to the reader pool."""

    def __init__(self, engine: "Engine", origin: Origin, progress: Progress | None) -> None:
        self._engine = engine
        self._origin = origin
        self._progress = progress

    @property
    def origin(self) -> Origin:
        """Who is calling, from where."""
        return self._origin

    async def write(self, command: Command) -> Any:
        """Leave a command with the writer."""
        writer, _ = await self._engine.ready()
        return await writer.write(command, self._origin)

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Run a query on a reader's connection."""
        _, readers = await self._engine.ready()
        try:
            return await readers.read(query, *arguments)
        except (apsw.CorruptError, apsw.NotADBError) as error:
            self._engine.index_is_damaged()
            raise StoreFailed("the index is damaged; a restart makes it anew from the log") from error

    async def rebuild(self) -> Mapping[str, Any]:
        """Fold the log into a fresh index between two batches, saying how far it is. Busy while one runs already."""
        writer, _ = await self._engine.ready()
        if self._engine.is_rebuilding:
            raise Busy("the index is being made anew already", retry_after_ms=REBUILD_RETRY_MS)
        self._engine.is_rebuilding = True
        try:
            return await self._rebuild(writer)
        finally:
            self._engine.is_rebuilding = False

    async def _rebuild(self, writer: Writer) -> Mapping[str, Any]:
        loop = asyncio.get_running_loop()

        def report(done: int, total: int) -> None:
            asyncio.run_coroutine_threadsafe(self.progress(done, total, "folding the log into a fresh index"), loop)

        started_ms = self._engine.clock.monotonic_ms()
        facts = await writer.alone(lambda store: store.rebuild(report, self._engine.is_stopped))
        return {
            "rebuilt": True,
            "log_bytes_before": facts.log_bytes,
            "log_bytes_after": facts.log_bytes,
            "generation": str(facts.generation),
            "duration_ms": round(self._engine.clock.monotonic_ms() - started_ms),
        }

    async def progress(self, done: float, total: float, sentence: str) -> None:
        """Tell the caller how far a long call has come, if it asked."""
        if self._progress is not None:
            await self._progress(done, total, sentence)

    def health(self) -> Mapping[str, Any]:
        """Facts that need no index."""
        return self._engine.health()
