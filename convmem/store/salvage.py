"""Salvage: what can still be read of a damaged store goes into a fresh one; the damaged one is only read.

What that is, rescue.py finds out. It is written as a compaction writes its state: a log that opens with it, and the
index folded from that. Until the log has its name there are nothing but staging files, which nobody takes for a store:
a salvage that was cut off can be begun again in the same place.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import apsw

from convmem.clock import Clock
from convmem.domain import Domain
from convmem.files import RealFiles, flush
from convmem.store import log
from convmem.store.generation import Draft, sweep
from convmem.store.rescue import Rescue, Salvaged, Tell
from convmem.store.shelf import SUFFIXES, FileShelf, index_name
from convmem.store.sqlite import connect, connect_to_build
from convmem.store.wreck import Wreck

INDEX = "staging-index.db"


def salvage(source: RealFiles, target: RealFiles, domains: Sequence[Domain], clock: Clock, tell: Tell) -> Salvaged:
    """Make a store in `target`, which holds none, of what can be read in `source`, and say what that was.

    Raises LogTooNew before anything is written; OSError or apsw.Error where the disk of `target` takes no more.
    """
    found = Salvaged(has_log=source.exists(log.NAME))
    with ExitStack() as stack:
        wreck = None
        if found.has_log:
            file = source.open_to_read(log.NAME)
            stack.callback(file.close)
            wreck = Wreck(file)
            found.generation = wreck.generation()
        sweep(target)
        stack.callback(sweep, target)
        rescue = Rescue(source, target, domains, found, tell)
        stack.callback(rescue.close)
        rescue.open_index(wreck)
        rescue.read(wreck)
        # Another generation than that of the damaged log.
        draft = Draft(target, StagingShelf(target), domains, clock, (found.generation or 0) + 1)
        _write(rescue, draft, target, found, tell)
    return found


def _write(rescue: Rescue, draft: Draft, target: RealFiles, found: Salvaged, tell: Tell) -> None:
    """Write what was saved as a log with its index, and give them their names, the log first: a log without an index
    is a whole store, and an index without its log is none.
    """
    total, written = rescue.total, 0

    def told(count: int) -> None:
        nonlocal written
        written += count
        tell(min(written, total), total, "writing what was saved")

    is_done = False
    try:
        draft.keep(rescue.records(), told)
        draft.end_state(found.sequence, rescue.made)
        draft.sync()
        draft.fold(lambda done, size: tell(done, size, "folding the index"), lambda: False)
        assert draft.index is not None
        # With its last connection the WAL goes, so that the file may be renamed; nothing bears the new name.
        draft.index.close()
        draft.name()
        target.rename(INDEX, index_name(draft.log.generation))
        draft.make_durable()
        is_done = True
    finally:
        if not is_done:
            draft.discard()
    draft.log.close()
    found.records = total


class StagingShelf(FileShelf):
    """Where the fresh index lies until its log has a name: under one that is no index's."""

    def _path(self) -> Path:
        return self.files.path(INDEX)

    def build(self, generation: int) -> apsw.Connection:
        self.remove(generation)
        return connect_to_build(self._path())

    def settle(self, generation: int) -> None:
        flush(self._path())

    def open(self, generation: int) -> apsw.Connection:
        return connect(self._path())

    def remove(self, generation: int) -> None:
        for suffix in SUFFIXES:
            self.files.remove(INDEX + suffix)
