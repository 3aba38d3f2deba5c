"""Access, for real: what a tool is handed, on behalf of one caller.

Writes go to the writer's mailbox, reads to the reader pool; both wait until the engine is ready or say why it is not.
Each visit to a reader is noted with what it cost: whoever asks may be told where the time of a call has gone.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import apsw

from convmem import exports, maintenance
from convmem.domain import Command, Origin
from convmem.errors import StoreFailed
from convmem.reach import Reach
from convmem.store.sqlite import DAMAGE

if TYPE_CHECKING:
    from convmem.engine import Engine

Result = TypeVar("Result")
Progress = Callable[[float, float, str], Coroutine[Any, Any, None]]


class Visit(NamedTuple):
    """One query on a reader: the name of its function, and its time with what it waited for a free reader."""

    stage: str
    ms: float


class StoreAccess:
    """Access, for real: writes go to the writer's mailbox, reads to the reader pool."""

    def __init__(self, engine: "Engine", origin: Origin, progress: Progress | None, reach: Reach = "admin") -> None:
        self._engine = engine
        self._origin = origin
        self._progress = progress
        self._reach = reach
        # Of this call, in their order.
        self.visits: list[Visit] = []

    @property
    def reach(self) -> Reach:
        """How far the caller's token reaches."""
        return self._reach

    @property
    def origin(self) -> Origin:
        """Who is calling, from where."""
        return self._origin

    async def write(self, command: Command) -> Any:
        """Leave a command with the writer."""
        writer, _ = await self._engine.ready()
        self._engine.refuse_if_closed_to_writes()
        return await writer.write(command, self._origin)

    async def write_all(self, commands: Sequence[Command]) -> list[Any]:
        """Leave commands with the writer together; the outcome of each: its answer, or the ConvmemError."""
        writer, _ = await self._engine.ready()
        self._engine.refuse_if_closed_to_writes()
        return await writer.write_all(commands, self._origin)

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Run a query on a reader's connection."""
        _, reading = await self._engine.ready()
        with self._noted(query):
            try:
                return await reading.readers.read(query, *arguments)
            except DAMAGE as error:
                self._engine.index_is_damaged()
                raise StoreFailed("the index is damaged; a restart makes it anew from the log") from error

    async def search(self, query: Callable[..., Result], *arguments: Any) -> Result | None:
        """Run a query on a reader's connection that sees tables of search; None if there are none to be used."""
        _, reading = await self._engine.ready()
        with self._noted(query):
            return await reading.search(query, *arguments)

    async def read_files(self, paths: Sequence[Path], query: Callable[..., Result], *arguments: Any) -> Result:
        """Run a query on table files."""
        await self._engine.ready()
        with self._noted(query):
            return await self._engine.table_reading.read(paths, query, *arguments)

    async def copy_file(self, source: Path, target: Path) -> int:
        """Copy a table file as it is at one moment."""
        await self._engine.ready()
        return await self._engine.table_reading.copy(source, target, self._engine.is_stopped)

    async def release_file(self, path: Path) -> bool:
        """Close a table file between two batches."""
        writer, _ = await self._engine.ready()
        return await writer.alone(lambda store: self._engine.table_reading.files.release(path))

    async def rewrite_file(self, path: Path, begin: Callable[[Any], Callable[[], object]]) -> None:
        """Write a table file anew without what is dead in it; what `begin(connection)` returned is called then."""
        await self.release_file(path)
        await self._engine.table_reading.rewrite(path, begin, self._engine.is_stopped)

    async def tables(self) -> Any:
        """What is mounted."""
        await self._engine.ready()
        if not self._engine.mounts_at_once:
            await self._engine.mount()
        assert self._engine.mounting is not None, "a tool of tables, and none are mounted"
        return self._engine.mounting

    @contextmanager
    def _noted(self, query: Callable[..., Any]) -> Iterator[None]:
        started_ms = self._engine.clock.monotonic_ms()
        yield
        self.visits.append(Visit(query.__name__, self._engine.clock.monotonic_ms() - started_ms))

    @property
    def redacts_everything(self) -> bool:
        """What the daemon was told."""
        return self._engine.redacts_everything

    def now_ms(self) -> int:
        """The daemon's clock."""
        return self._engine.clock.now_ms()

    async def save_export(
        self, filename: str | None, pieces: Callable[[apsw.Connection], Iterator[bytes]]
    ) -> Mapping[str, Any]:
        """Write a new file of the data directory's exports."""
        return await exports.save(self._engine, filename, pieces)

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
