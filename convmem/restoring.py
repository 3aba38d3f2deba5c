"""Backups and files alone: what verbs do about them where no daemon runs, or beside one.

A proof and a restore need no store at all, only the files; a backup of a store that nobody holds opens it for as long
as it takes.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from convmem import backups, holding, stopping, table_restore
from convmem.clock import SystemClock
from convmem.config import SETTINGS_FILE, Settings
from convmem.daemon import alone, domains
from convmem.errors import Busy
from convmem.files import RealFiles
from convmem.store import restore as restoring
from convmem.store import sqlite
from convmem.store.restore import Proven, Watch
from convmem.store.shelf import FileShelf

Tell = Callable[[float, float, str], None]


def back_up(settings: Settings, arguments: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    """Back up a store that nobody holds; facts and refusals are those of the daemon's verb. StoreLocked."""
    return stopping.run(_back_up(settings, arguments, tell))


async def _back_up(settings: Settings, arguments: Mapping[str, Any], tell: Tell) -> Mapping[str, Any]:
    async def progress(done: float, total: float, sentence: str) -> None:
        tell(done, total, sentence)

    async with alone(settings) as engine:
        while True:
            try:
                await engine.ready()
                break
            except Busy as busy:
                # The index is being made: that ends, and a person would rather wait for it.
                tell(busy.details["done"], busy.details["total"], busy.message)
                await asyncio.sleep(busy.details["retry_after_ms"] / 1000)
        return await engine.backups.back_up(arguments, progress)


def verify(source: Path, tell: Tell) -> Mapping[str, Any]:
    """Prove a restore of a backup, without any store: the facts of the daemon's verb. BackupRefused, DiskFault."""
    clock = SystemClock()
    started_ms = clock.monotonic_ms()
    files = RealFiles(source)
    backups.check_proof(files)
    # A database without a name lies in the system's directory for temporary files, and is gone with its connection.
    with closing(sqlite.connect_to_build("")) as scratch, stopping.noticed() as is_stopped:
        proven = restoring.prove(files, scratch, domains(), clock, Watch(tell, is_stopped))
    return _facts(source, proven, clock.monotonic_ms() - started_ms)


def restore(settings: Settings, source: Path, tell: Tell) -> Mapping[str, Any]:
    """Make a store of a backup in an empty data directory. BackupRefused, StoreLocked, DiskFault, and what refuses a
    data directory; there is no store then.
    """
    clock = SystemClock()
    started_ms = clock.monotonic_ms()
    files = RealFiles(source)
    # First of all: what is no backup makes no data directory.
    restoring.read_manifest(files)
    with closing(holding.take(settings)) as held, holding.usable(settings.data_dir):
        shelf = FileShelf(held.directory)
        places = table_restore.places(settings.data_dir, restoring.read_manifest(files), files)
        places.refuse_others()
        beside = {holding.LOCK, SETTINGS_FILE, "lost+found", table_restore.DIRECTORY}
        try:
            with closing(shelf.scratch()) as scratch, stopping.noticed() as is_stopped:
                watch = Watch(tell, is_stopped)
                proven = restoring.restore(
                    files,
                    held.directory,
                    scratch,
                    domains(),
                    clock,
                    beside=beside,
                    put_table=places.put,
                    watch=watch,
                )
        finally:
            shelf.drop_scratch()
    facts = _facts(source, proven, clock.monotonic_ms() - started_ms)
    return {**facts, "data_dir": str(settings.data_dir), **places.facts()}


def _facts(source: Path, proven: Proven, duration_ms: float) -> dict[str, Any]:
    return {
        "src": str(source),
        **backups.facts(proven.manifest),
        "live": proven.live,
        "duration_ms": round(duration_ms),
    }
