"""Stores for tests: indexes in memory, opened the way the daemon opens them, checked when a test is done with them."""

from dataclasses import dataclass, field
from typing import Any

import apsw

from convmem.domain import Command, Domain, Origin
from convmem.store import check, opening
from convmem.store.log import NAME
from convmem.store.recovery import Report
from convmem.store.store import Store, Ticket
from tests.support.faulty_files import FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK

ORIGIN = Origin("local", "test")


@dataclass
class MemoryShelf:
    """Index files kept as images; an open connection is one copy, `keep` puts it back as a closed file would."""

    images: dict[int, bytes] = field(default_factory=dict)
    connection: apsw.Connection | None = None

    def generations(self) -> list[int]:
        return sorted(self.images)

    def open(self, generation: int) -> apsw.Connection:
        connection = apsw.Connection(":memory:")
        if self.images.setdefault(generation, b""):
            connection.deserialize("main", self.images[generation])
        self.connection = connection
        return connection

    def remove(self, generation: int) -> None:
        self.images.pop(generation, None)

    def image(self) -> bytes:
        """What is committed now, as a file would hold it."""
        assert self.connection is not None
        return self.connection.serialize("main")


@dataclass
class Opened:
    """A store, and everything around it that a test may want to look at or break."""

    store: Store
    report: Report
    disk: FaultyFiles
    shelf: MemoryShelf
    clock: ManualClock
    domain: Domain

    @property
    def connection(self) -> apsw.Connection:
        assert self.shelf.connection is not None
        return self.shelf.connection

    def commit(self, *commands: Command) -> list[Any]:
        """Commit one batch."""
        return self.store.commit([Ticket(command, ORIGIN) for command in commands])

    def log(self) -> bytes:
        """The bytes of the log as written."""
        return self.disk.files[NAME].written

    def check(self) -> list[str]:
        """What `convmem check` would say now."""
        return check.check(self.disk.files[NAME], self.connection, [self.domain], self.clock)


def open_store(
    disk: FaultyFiles | None = None,
    *,
    index: bytes | None = None,
    clock: ManualClock | None = None,
    domain: Domain = NOTEBOOK,
) -> Opened:
    """Open a store on `disk`, with the index image that a start would find (None: no index), and fold what is
    missing.
    """
    disk, clock = disk or FaultyFiles(), clock or ManualClock()
    shelf = MemoryShelf({} if index is None else {1: index})
    store, report = opening.open_store(disk, shelf, [domain], clock)
    store.catch_up(lambda done, total: None)
    return Opened(store, report, disk, shelf, clock, domain)
