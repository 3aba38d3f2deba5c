"""Access, for real: what a tool is handed, on behalf of one caller.

Writes go to the writer's mailbox, reads to the reader pool; both wait until the engine is ready or say why it is not.
"""

from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from convmem import maintenance
from convmem.domain import Command, Origin
from convmem.errors import StoreFailed
from convmem.store.sqlite import DAMAGE

if TYPE_CHECKING:
    from convmem.engine import Engine

Result = TypeVar("Result")
Progress = Callable[[float, float, str], Coroutine[Any, Any, None]]


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
        self._engine.refuse_if_closed_to_writes()
        return await writer.write(command, self._origin)

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Run a query on a reader's connection."""
        _, readers = await self._engine.ready()
        try:
            return await readers.read(query, *arguments)
        except DAMAGE as error:
            self._engine.index_is_damaged()
            raise StoreFailed("the index is damaged; a restart makes it anew from the log") from error

    async def rebuild(self) -> Mapping[str, Any]:
        """Compact the log into a new generation, saying how far it is. Busy while one is made already."""
        return await maintenance.compact(self._engine, self.progress)

    async def progress(self, done: float, total: float, sentence: str) -> None:
        """Tell the caller how far a long call has come, if it asked."""
        if self._progress is not None:
            await self._progress(done, total, sentence)

    def health(self) -> Mapping[str, Any]:
        """Facts that need no index."""
        return self._engine.health()
