"""Files of records and a store that nobody holds: the same engine as a daemon's, for as long as one command takes.

Synchronous for the command line, which knows of the engine only what stands here.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from convmem import exchange, files, records, stopping, table_operations
from convmem.config import Settings
from convmem.daemon import alone, operated
from convmem.distilling import Distilling
from convmem.domain import Origin
from convmem.engine import Engine
from convmem.exchange import asked
from convmem.maintenance import Progress

if TYPE_CHECKING:
    from convmem.importing import Batches

Tell = Callable[[float, float, str], None]


def export(settings: Settings, write: Callable[[bytes], object]) -> None:
    """Write the store as JSON Lines, piece by piece. Raises what keeps the store from being opened."""

    async def run() -> None:
        async with alone(settings) as engine, aclosing(exchange.export(engine)) as pieces:
            async for piece in pieces:
                write(piece)

    stopping.run(run())


def bring(settings: Settings, path: Path, policy: str, *, dry_run: bool, tell: Tell) -> Mapping[str, Any]:
    """Take the records of a file into the store; the facts of exchange.bring(). Raises what refuses file or store."""
    known, _ = asked({"policy": policy})

    async def progress(done: float, total: float, sentence: str) -> None:
        tell(done, total, sentence)

    async def run() -> Mapping[str, Any]:
        # The file is closed last: until the engine has ended, a thread may be reading it.
        with closing(files.regular(path)) as file:
            async with alone(settings) as engine:
                return await exchange.bring(engine, file, known, dry_run=dry_run, progress=progress)

    return stopping.run(run())


def take_in(settings: Settings, batches: "Batches", for_all: Mapping[str, Any], stop: Callable[[], object]) -> None:
    """Take in batches of records (importing.py); each is told its outcomes, `for_all` goes with every one.

    Where it is to end `stop` is called: whoever makes batches makes no more. Raises StoreLocked if somebody holds it.
    """

    async def work(engine: Engine, progress: Progress) -> None:
        access = engine.access(Origin("local", "cli"))
        outcomes: Sequence[Mapping[str, Any]] | None = None

        def step(before: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
            try:
                return batches.send(before)
            except StopIteration:
                return None

        try:
            batch = await asyncio.to_thread(step, None)
            while batch is not None:
                before = outcomes
                if batch:
                    answer = await records.taken(access, records.given({"records": batch, **for_all}))
                    outcomes = answer["outcomes"]
                batch = await asyncio.to_thread(step, before)
        except asyncio.CancelledError:
            stop()
            raise

    operated(settings, work, lambda done, total, sentence: None)


def tables(settings: Settings, tell: Tell) -> Mapping[str, Any]:
    """List the tables of a store that nobody holds. Raises StoreLocked if somebody does."""

    async def work(engine: Engine, progress: Progress) -> Mapping[str, Any]:
        return await table_operations.listed(engine.access(Origin("local", "cli")))

    return operated(settings, work, tell)


def purge_history(settings: Settings, arguments: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Purge versions of rows of a store that nobody holds; likewise."""

    async def work(engine: Engine, progress: Progress) -> Mapping[str, Any]:
        return await table_operations.purged(engine.access(Origin("local", "cli")), arguments, progress)

    return operated(settings, work, tell)


def distill(settings: Settings, arguments: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Distill a store that nobody holds; the facts of Distilling.distill(). Raises StoreLocked if somebody does."""

    async def work(engine: Engine, progress: Progress) -> Mapping[str, Any]:
        return await Distilling(engine, settings.retention_days).distill(arguments, progress, Origin("local", "cli"))

    return operated(settings, work, tell)
