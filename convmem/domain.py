"""What a domain is: the one value that each of messages, memory and tables exports, and the nouns it is made of.

    input   what a caller may ask (pydantic: it faces people)
    command an input left with the writer
    event   a fact that happened (msgspec: it faces the disk)
    decide  command + what is known -> an answer and events, or a refusal
    apply   one event -> SQL in the index

The store knows domains only through this module; domains know the store only through Access.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeVar

import apsw
import msgspec

if TYPE_CHECKING:
    from convmem.inputs import Input

Result = TypeVar("Result")


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A fact that has happened. Written to the log, never changed, never renamed; fields are only ever added."""


class Origin(msgspec.Struct, frozen=True, array_like=True):
    """Where a record came from. Set by the daemon, never by a caller."""

    device: str
    transport: str
    client: str | None = None


class Place(NamedTuple):
    """Where an entry stands in the log: all that an applier may know beside the event."""

    sequence: int
    at_ms: int
    origin: Origin


class Stamp(NamedTuple):
    """What the writer gives a command, so that deciding needs no clock and no dice."""

    place: Place
    ulid: str


class Decided(NamedTuple):
    """What a decider found: the answer for the caller, and the events that make it true (none: nothing is written)."""

    answer: Any
    events: tuple[Event, ...] = ()


class Command(Protocol):
    """An input left with the writer."""

    @property
    def size_bytes(self) -> int:
        """About how many bytes the command holds; bounds the mailbox and the batch."""


Decider = Callable[[apsw.Connection, Any, Stamp], Decided]
Applier = Callable[[apsw.Connection, Any, Place], None]


class Access(Protocol):
    """What a tool may do, on behalf of one caller."""

    @property
    def origin(self) -> Origin:
        """Who is calling, from where."""

    async def write(self, command: Command) -> Any:
        """Leave a command with the writer; its answer once it is durable, or the ConvmemError that says why not."""

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Run `query(connection, *arguments)` on a read-only connection that sees everything acknowledged so far."""

    async def rebuild(self) -> Mapping[str, Any]:
        """Fold the log into a fresh index: rebuilt, log_bytes_before, log_bytes_after, generation, duration_ms."""

    async def progress(self, done: float, total: float, sentence: str) -> None:
        """Tell the caller how far a long call has come, if it asked."""

    def health(self) -> Mapping[str, Any]:
        """Facts of the daemon and the store that need no index; answers in every phase."""


class Answer(NamedTuple):
    """What a tool answers: facts for programs and, if it is prose, the text for the model (else the facts as JSON)."""

    facts: Mapping[str, Any]
    text: str | None = None


Scope = Literal["read", "write", "admin"]


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One MCP tool: its name and description are contract, its input class is its schema."""

    name: str
    title: str
    description: str
    input: "type[Input]"
    handle: Callable[[Access, Any], Awaitable[Answer]]
    scope: Scope
    reads_only: bool
    destructive: bool = False
    idempotent: bool = False


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A part of convmem with its own words.

    `create` is the SQL of its tables in the index (prefixed with the domain's name). `made_ids` tells the store which
    event holds an id that the store made, so that ids rise across restarts. `check` returns violated invariants of the
    index in plain sentences. `counts` are the domain's own facts for health.
    """

    name: str
    create: str
    deciders: Mapping[type[Any], Decider]
    appliers: Mapping[type[Event], Applier]
    made_ids: Mapping[type[Event], Callable[[Any], str]] = field(default_factory=dict)
    check: Callable[[apsw.Connection], list[str]] = lambda connection: []
    tools: tuple[Tool, ...] = ()
