"""Stores for tests: indexes in memory, opened the way the daemon opens them, checked when a test is done with them."""

from dataclasses import dataclass, field
from typing import Any

import apsw

from convmem.domain import Command, Domain, Origin
from convmem.store import check, opening
from convmem.store.compaction import Outcome, Parts, Rewrite
from convmem.store.log import NAME
from convmem.store.recovery import Report
from convmem.store.store import Store, Ticket
from tests.support.faulty_files import FaultyFiles
from tests.support.manual_clock import ManualClock
from tests.support.notebook import NOTEBOOK

ORIGIN = Origin("local", "test")


class Imaged(apsw.Connection):
    """A connection in memory whose last state can be had when it is closed, as from a file."""

    image = b""

    def close(self, force: bool = False) -> None:
        self.image = self.serialize("main")
        super().close(force)


@dataclass
class MemoryShelf:
    """Index files kept as images; an open connection works on a copy. What `refuses` names raises that error."""

    images: dict[int, bytes] = field(default_factory=dict)
    connections: dict[int, Imaged] = field(default_factory=dict)
    refuses: dict[str, Exception] = field(default_factory=dict)
    built: Imaged | None = None

    def generations(self) -> list[int]:
        return sorted(self.images)

    def searches(self) -> list[int]:
        return []

    def open(self, generation: int) -> apsw.Connection:
        self._refuse("open")
        connection = Imaged(":memory:")
        if self.images.setdefault(generation, b""):
            connection.deserialize("main", self.images[generation])
        self.connections[generation] = connection
        return connection

    def build(self, generation: int) -> apsw.Connection:
        self._refuse("build")
        self.images[generation] = b""
        self.built = Imaged(":memory:")
        return self.built

    def settle(self, generation: int) -> None:
        self._refuse("settle")
        assert self.built is not None
        self.images[generation] = self.built.image

    def scratch(self) -> apsw.Connection:
        self._refuse("scratch")
        return apsw.Connection(":memory:")

    def drop_scratch(self) -> None:
        pass

    def remove(self, generation: int) -> None:
        self._refuse("remove")
        self.images.pop(generation, None)
        self.connections.pop(generation, None)

    def image(self, generation: int | None = None) -> bytes:
        """What is committed now in a generation's index (the oldest there is), as a file would hold it."""
        connection = self.connections[min(self.connections) if generation is None else generation]
        return connection.image or connection.serialize("main")

    def _refuse(self, name: str) -> None:
        if error := self.refuses.get(name):
            raise error


@dataclass
class Opened:
    """A store, and everything around it that a test may want to look at or break."""

    store: Store
    report: Report
    disk: FaultyFiles
    shelf: MemoryShelf
    clock: ManualClock
    domain: Domain
    is_damaged: bool = False

    @property
    def connection(self) -> apsw.Connection:
        return self.shelf.connections[self.store.log.generation]

    def commit(self, *commands: Command) -> list[Any]:
        """Commit one batch."""
        return self.store.commit([Ticket(command, ORIGIN) for command in commands])

    def log(self) -> bytes:
        """The bytes of the log as written."""
        return self.disk.files[NAME].written

    def rewrite(self, **more: Any) -> Rewrite:
        """A compaction of this store, not begun."""
        parts = Parts(self.disk, self.shelf, [self.domain], self.clock)
        return Rewrite(parts, self.store.log, lambda: self.store.log.end, **more)

    def compact(self, *meanwhile: Command, **more: Any) -> Outcome:
        """Compact from beginning to end; `meanwhile` is committed before the new generation takes over."""
        rewrite = self.rewrite(**more)
        rewrite.prepare()
        for command in meanwhile:
            self.commit(command)
        outcome = rewrite.finish(self.store)
        rewrite.clean()
        return outcome

    def check(self) -> list[str]:
        """What `convmem check` would say now."""
        return check.check(self.disk.files[NAME], self.connection, [self.domain], self.clock)

    def declare_damaged(self) -> "Opened":
        """Say that the test damages this store on purpose: nobody checks it afterwards."""
        self.is_damaged = True
        return self

    @property
    def must_be_sound(self) -> bool:
        """True if nothing happened after which nobody can know what is there."""
        return not (self.is_damaged or self.disk.is_dark or self.store._failed is not None)


# What open_store has opened and no later start has taken over; every test's end looks at it (tests/conftest.py).
OPENED: list[Opened] = []


def violations() -> list[str]:
    """What is wrong with the stores in OPENED that must be sound."""
    return [violation for opened in OPENED if opened.must_be_sound for violation in opened.check()]


def open_store(
    disk: FaultyFiles | None = None,
    *,
    index: bytes | dict[int, bytes] | None = None,
    clock: ManualClock | None = None,
    domain: Domain = NOTEBOOK,
) -> Opened:
    """Open a store on `disk`, with the index images that a start would find (None: no index; bytes: of the first
    generation), and fold what is missing.
    """
    disk, clock = disk or FaultyFiles(), clock or ManualClock()
    shelf = MemoryShelf(dict(index) if isinstance(index, dict) else {} if index is None else {1: index})
    OPENED[:] = [opened for opened in OPENED if opened.disk is not disk]
    store, report = opening.open_store(disk, shelf, [domain], clock)
    store.catch_up(lambda done, total: None)
    OPENED.append(Opened(store, report, disk, shelf, clock, domain))
    return OPENED[-1]
