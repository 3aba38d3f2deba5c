"""A real engine on a real directory in the test's own loop, and its tools called as the daemon calls them."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw

from convmem.catalog import Catalog
from convmem.clock import Clock, SystemClock
from convmem.daemon import domains
from convmem.domain import Domain, Kept, Origin
from convmem.engine import Engine
from convmem.files import RealFiles
from tests.support.notebook import NOTEBOOK
from tests.support.waiting import until

ORIGIN = Origin("laptop", "http", "tester/1")
PATIENCE_S = 10


@asynccontextmanager
async def running(
    directory: Path | RealFiles,
    load_domains: Callable[[], Sequence[Domain]] = lambda: [NOTEBOOK],
    clock: Clock | None = None,
) -> AsyncIterator[Engine]:
    """An engine from its start to its stop."""
    files = directory if isinstance(directory, RealFiles) else RealFiles(directory)
    async with started(Engine(files, load_domains, clock or SystemClock())) as engine:
        yield engine


@asynccontextmanager
async def started(engine: Engine) -> AsyncIterator[Engine]:
    """This engine from its start to its stop."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(engine.run())
        yield engine
        engine.stop()


async def followed(engine: Engine) -> None:
    """Return once the tables of search know all that is stored and nothing more is written to them."""
    assert engine.writer is not None
    writer = engine.writer
    await until(lambda: engine.indexer.rested_sequence == writer.facts.sequence)


class Tools:
    """The tools of messages over one engine."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._catalog = Catalog(domains())

    async def call(self, tool: str, **arguments: Any) -> Any:
        """The facts of the answer."""
        access = self.engine.access(ORIGIN)
        return (await self._catalog.call(self._catalog.tools[tool], arguments, access)).facts

    async def say(self, content: str, session_id: str = "s", **more: Any) -> dict[str, Any]:
        """Write a message; its receipt."""
        facts: dict[str, Any] = await self.call(
            "write_message", **{"session_id": session_id, "role": "user", "content": content} | more
        )
        return facts


@asynccontextmanager
async def tools(directory: Path, clock: Clock | None = None) -> AsyncIterator[Tools]:
    """An engine with the messages domain, and its tools."""
    async with running(directory, domains, clock) as engine:
        await engine.ready()
        yield Tools(engine)


class Gate:
    """A notebook whose live records can be read only after open(): a compaction that waits half-way."""

    def __init__(self) -> None:
        self._is_reached, self._is_open = threading.Event(), threading.Event()
        self.domain = replace(NOTEBOOK, live=self._live)

    def _live(self, connection: apsw.Connection) -> Iterator[Kept]:
        self._is_reached.set()
        assert self._is_open.wait(PATIENCE_S)
        yield from NOTEBOOK.live(connection)

    def open(self) -> None:
        """Let compactions go on, from now on without waiting."""
        self._is_open.set()

    async def reached(self) -> None:
        """Return once a compaction waits at the gate."""
        assert await asyncio.to_thread(self._is_reached.wait, PATIENCE_S)


def names(directory: Path) -> list[str]:
    """The files of a data directory, without what SQLite keeps beside its own."""
    return sorted(path.name for path in directory.iterdir() if not path.name.endswith(("-wal", "-shm")))
