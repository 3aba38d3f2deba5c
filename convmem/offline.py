"""Files of records and a store that nobody holds: the same engine as a daemon's, for as long as one command takes.

Synchronous for the command line, which knows of the engine only what stands here.
"""

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from convmem import exchange, files
from convmem.config import Settings
from convmem.daemon import alone
from convmem.exchange import asked

Tell = Callable[[float, float, str], None]


def export(settings: Settings, write: Callable[[bytes], object]) -> None:
    """Write the store as JSON Lines, piece by piece. Raises what keeps the store from being opened."""

    async def run() -> None:
        async with alone(settings) as engine:
            async for piece in exchange.export(engine):
                write(piece)

    asyncio.run(run())


def bring(settings: Settings, path: Path, policy: str, *, dry_run: bool, tell: Tell) -> Mapping[str, Any]:
    """Take the records of a file into the store; the facts of exchange.bring(). Raises what refuses file or store."""
    known, _ = asked({"policy": policy})

    async def progress(done: float, total: float, sentence: str) -> None:
        tell(done, total, sentence)

    async def run() -> Mapping[str, Any]:
        async with alone(settings) as engine:
            file = files.regular(path)
            try:
                return await exchange.bring(engine, file, known, dry_run=dry_run, progress=progress)
            finally:
                file.close()

    return asyncio.run(run())
