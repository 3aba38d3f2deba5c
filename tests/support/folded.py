"""A domain without a store, that of messages: decide and apply on a connection in memory, and an Access over it.

What the store promises is kept: a refusal undoes itself, ids and sequences rise, events go through their encoding
before they are applied. `refold` applies the whole log to empty tables.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import apsw
import msgspec

from convmem.clock import Identifiers
from convmem.domain import Command, Domain, Event, Origin, Place, Stamp
from convmem.errors import CallerError, Conflict
from convmem.inputs import Input, checked
from convmem.messages import DOMAIN, tools
from convmem.messages.events import (
    FingerprintKept,
    MessageDeleted,
    MessageKept,
    MessageUpdated,
    MessageWritten,
    ReceiptKept,
)
from convmem.reach import Reach
from convmem.store.made import Maker
from tests.support.manual_clock import ManualClock

ORIGIN = Origin("local", "test")
TOOLS = {tool.name: tool for tool in tools.TOOLS}
DECODER = msgspec.msgpack.Decoder(
    MessageWritten | MessageUpdated | MessageDeleted | MessageKept | ReceiptKept | FingerprintKept
)


def empty_index(domain: Domain = DOMAIN) -> apsw.Connection:
    """The tables of a domain with nothing in them."""
    connection = apsw.Connection(":memory:")
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DML, 0)
    connection.config(apsw.SQLITE_DBCONFIG_DQS_DDL, 0)
    connection.execute(domain.create)
    return connection


def tables(connection: apsw.Connection) -> dict[str, list[tuple[Any, ...]]]:
    """Every row of every table, for comparing two indexes."""
    names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name").fetchall()
    return {name: sorted(connection.execute(f"SELECT * FROM {name}"), key=repr) for (name,) in names}


@dataclass
class Folded:
    """An Access over one connection in memory. `log` holds (place, encoded event)."""

    domain: ClassVar[Domain] = DOMAIN
    decode: ClassVar[Callable[[bytes], Any]] = DECODER.decode

    origin: Origin = ORIGIN
    clock: ManualClock = field(default_factory=ManualClock)
    health_facts: Mapping[str, Any] = field(default_factory=lambda: {"status": "ok"})
    failure: Exception | None = None
    redacts: bool = False
    exports: dict[str, bytes] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.connection = empty_index(self.domain)
        self.maker = Maker([self.domain])
        self.log: list[tuple[Place, bytes]] = []
        self.sequence = 0
        self.reads = 0
        self.identifiers = Identifiers(self.clock, None)
        self.last_number = 0

    def commit(self, command: Command) -> Any:
        """Decide and apply one command."""
        place = Place(self.sequence + 1, self.clock.now_ms(), self.origin)
        stamp = Stamp(place, self.identifiers.next(place.at_ms), self.last_number + 1)
        self.connection.execute("SAVEPOINT command")
        try:
            answer, events = self.domain.deciders[type(command)](self.connection, command, stamp)
            for event in events:
                self._apply(event, place)
        except CallerError:
            self.connection.execute("ROLLBACK TO command")
            raise
        finally:
            self.connection.execute("RELEASE command")
        self.sequence += bool(events)
        self.last_number = max(self.last_number, self.maker.of(events).last_number)
        return answer

    def _apply(self, event: Event, place: Place) -> None:
        encoded = msgspec.msgpack.encode(event)
        self.log.append((place, encoded))
        decoded = self.decode(encoded)
        self.domain.appliers[type(decoded)](self.connection, decoded, place)

    def refold(self) -> apsw.Connection:
        """A fresh index of the same log."""
        connection = empty_index(self.domain)
        for place, encoded in self.log:
            event = self.decode(encoded)
            self.domain.appliers[type(event)](connection, event, place)
        return connection

    def prove(self) -> None:
        """Nothing is violated, and the index is exactly what its log says."""
        assert self.domain.check(self.connection) == []
        assert tables(self.connection) == tables(self.refold())

    async def write(self, command: Command) -> Any:
        return self.commit(command)

    async def read(self, query: Callable[..., Any], *arguments: Any) -> Any:
        self.reads += 1
        if self.failure is not None:
            raise self.failure
        self.connection.execute("PRAGMA query_only = ON")
        try:
            return query(self.connection, *arguments)
        finally:
            self.connection.execute("PRAGMA query_only = OFF")

    async def search(self, query: Callable[..., Any], *arguments: Any) -> Any:
        """There are no tables of search here (indexed.py has them)."""
        return None

    @property
    def reach(self) -> Reach:
        return "admin"

    @property
    def redacts_everything(self) -> bool:
        return self.redacts

    def now_ms(self) -> int:
        return self.clock.now_ms()

    async def save_export(
        self, filename: str | None, pieces: Callable[[apsw.Connection], Iterator[bytes]]
    ) -> Mapping[str, Any]:
        """The file stays in memory."""
        name = filename or f"memory-{len(self.exports)}.json"
        if name in self.exports:
            raise Conflict("there is an export of this name already", field="filename")
        data = self.exports[name] = b"".join(pieces(self.connection))
        digest = hashlib.sha256(data).hexdigest()
        return {"filename": name, "size_bytes": len(data), "sha256": digest, "preview": data.decode()[:500]}

    async def rebuild(self) -> Mapping[str, Any]:
        return {"rebuilt": False}

    async def progress(self, done: float, total: float, sentence: str) -> None:
        pass

    def health(self) -> Mapping[str, Any]:
        return self.health_facts

    async def call(self, name: str, **arguments: Any) -> Any:
        """What a tool answers to these arguments, checked as the catalog checks them."""
        tool = TOOLS[name]
        answer = await tool.handle(self, checked(tool.input, arguments))
        return answer.facts

    async def say(self, content: str, session_id: str = "s", role: str = "user", **metadata: Any) -> str:
        """Write a message; return its id."""
        facts = await self.call("write_message", session_id=session_id, role=role, content=content, metadata=metadata)
        return str(facts["message_id"])


def refused(input_class: type[Input], **arguments: Any) -> str:
    """The code and field with which these arguments are refused."""
    try:
        checked(input_class, arguments)
    except CallerError as error:
        return f"{error.code} {error.details.get('field')}"
    raise AssertionError("these arguments were not refused")
