"""Backups of stores on disks in memory: made of a real store, proven by a real replay."""

from collections.abc import Callable
from contextlib import AbstractContextManager

import apsw

from convmem.store import backup, restore
from convmem.store.backup import Source
from convmem.store.manifest import Manifest
from convmem.store.restore import Proven
from tests.support.faulty_files import FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK
from tests.support.stores import Opened


def copy_of(image: bytes) -> apsw.Connection:
    """A connection of its own to an index, as it is now."""
    connection = apsw.Connection(":memory:")
    connection.deserialize("main", image)
    return connection


def looked_at(opened: Opened) -> AbstractContextManager[Source]:
    """The store as a backup sees it: with a reader's connection to its index."""

    def connect(generation: int) -> apsw.Connection:
        if generation not in opened.shelf.connections:
            raise apsw.CantOpenError("unable to open database file")
        return copy_of(opened.shelf.image(generation))

    return backup.looked_at(opened.disk, connect, [opened.domain])


def back_up(
    opened: Opened, target: FaultyFiles, *, with_tokens: bool = False, is_stopped: Callable[[], bool] = lambda: False
) -> tuple[Manifest, int]:
    """Bring the backup in `target` to what the store is."""
    with looked_at(opened) as source:
        return backup.back_up(source, target, opened.clock, with_tokens=with_tokens, is_stopped=is_stopped)


def prove(target: FaultyFiles) -> Proven:
    """Prove a restore of the backup in `target`."""
    return restore.prove(target, apsw.Connection(":memory:"), [NOTEBOOK], ManualClock())


def restored(source: FaultyFiles, target: FaultyFiles) -> Proven:
    """Restore the backup in `source` into a data directory."""
    scratch = apsw.Connection(":memory:")
    beside = {"store.lock", "convmem.env"}
    return restore.restore(source, target, scratch, [NOTEBOOK], ManualClock(), beside=beside)
