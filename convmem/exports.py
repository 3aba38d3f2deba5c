"""Files that a caller asks for by name and an operator finds in the data directory: exports/.

A file appears whole or not at all, and never in the place of another one. Names are checked by whoever takes them in
from outside; here a name is a name in one directory.
"""

import asyncio
import hashlib
import os
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import apsw

from convmem.errors import Conflict, DiskFault
from convmem.files import RealFiles, appearing
from convmem.limits import EXPORT_PREVIEW_CODE_POINTS_MAX

if TYPE_CHECKING:
    from convmem.engine import Engine

DIRECTORY = "exports"
Pieces = Callable[[apsw.Connection], Iterator[bytes]]


async def save(engine: "Engine", filename: str | None, pieces: Pieces) -> Mapping[str, Any]:
    """Write the pieces of one moment: {filename, size_bytes, sha256, preview}. Conflict if the name is taken."""
    await engine.ready()
    async with engine.exporting:
        return await engine.apart(asyncio.to_thread(_save, engine, filename, pieces))


def _save(engine: "Engine", filename: str | None, pieces: Pieces) -> Mapping[str, Any]:
    directory = RealFiles(engine.files.root / DIRECTORY)
    # realpath() also answers for a link to itself.
    if Path(os.path.realpath(directory.root)).parent != Path(os.path.realpath(engine.files.root)):
        raise DiskFault("exports is a link that leads out of the data directory; nothing was written there")
    if engine.files.exists(DIRECTORY) and not os.path.isdir(directory.root):
        raise DiskFault("exports/ of the data directory is no directory; nothing was written")
    directory.prepare()
    taken = set(directory.names())
    name = _free(taken, engine.clock.now_ms()) if filename is None else filename
    assert Path(name).name == name
    if name in taken:
        raise Conflict("there is an export of this name already", field="filename")
    digest, size, start = hashlib.sha256(), 0, b""
    with closing(engine.snapshot()) as connection, appearing(directory.path(name)) as write:
        for piece in pieces(connection):
            write(piece)
            digest.update(piece)
            size += len(piece)
            if len(start) < 4 * EXPORT_PREVIEW_CODE_POINTS_MAX:
                start += piece
    preview = start.decode(errors="ignore")
    if size > len(start) or len(preview) > EXPORT_PREVIEW_CODE_POINTS_MAX:
        preview = preview[: EXPORT_PREVIEW_CODE_POINTS_MAX - 1] + "…"
    return {"filename": name, "size_bytes": size, "sha256": digest.hexdigest(), "preview": preview}


def _free(taken: Collection[str], now_ms: int) -> str:
    """A name that nothing bears: the time, and a number if need be."""
    stem = f"memory-{datetime.fromtimestamp(now_ms / 1000, UTC):%Y%m%d-%H%M%S}"
    name, number = f"{stem}.json", 2
    while name in taken:
        name, number = f"{stem}-{number}.json", number + 1
    return name
