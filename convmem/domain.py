"""What a domain is: the one value that each of messages, memory and tables exports, and the nouns it is made of.

    input   what a caller may ask (pydantic: it faces people)
    command an input left with the writer
    event   a fact that happened (msgspec: it faces the disk)
    decide  command + what is known -> an answer and events, or a refusal
    apply   one event -> SQL in the index
    kept    a live record as one state event: what compaction, export and the state hash are made of

The store knows domains only through this module; domains know the store only through Access.
"""

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import apsw
import msgspec

from convmem.reach import Reach
from convmem.targets import TableDecider

if TYPE_CHECKING:
    from convmem.inputs import Input
    from convmem.resources import Resource

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
    """What the writer gives a command, so that deciding needs no clock and no dice.

    `number` is the next of one counter over all records that people call by number; it counts as used once an event
    holds it (Domain.made_numbers).
    """

    place: Place
    ulid: str
    number: int


class Decided(NamedTuple):
    """What a decider found: the answer for the caller, and the events that make it true (none: nothing is written)."""

    answer: Any
    events: tuple[Event, ...] = ()


class Kept(NamedTuple):
    """A live record, whole: `event` is its state event, `sequence` that of the entry that created it."""

    sequence: int
    at_ms: int
    origin: Origin
    event: Event


class Reference(NamedTuple):
    """What a record of a file points at: the field that says so, and the identity of the target."""

    field: str
    identity: bytes


class Named(NamedTuple):
    """Which record a line of a file is, and which others must be there.

    `ids` are those that it bears beside its identity, each as the identity of a message of that id: no id is borne by
    two records. `is_limited` says that a store holds only so many like it (RecordType.refuse_more).
    """

    identity: bytes
    references: tuple[Reference, ...] = ()
    ids: tuple[bytes, ...] = ()
    is_limited: bool = False


class Borne(NamedTuple):
    """An id that a stored record bears beside its identity, in the form of Named.ids."""

    id: bytes
    identity: bytes


class Record(NamedTuple):
    """What a line of a file says."""

    at_ms: int
    origin: Origin
    event: Event


@dataclass(frozen=True, kw_only=True)
class RecordType:
    """How one kind of record stands on a line of a file (JSON Lines).

    `encode` gives the line of a kept record without its line break. `check` looks at every field of a stranger's line
    (Invalid with `field`); `check_quickly` at a line as it stands: what `check` would answer if it is just as `encode`
    writes it and nothing is near a bound, else None. `decode` reads a line that one of them has accepted. `identify`
    names a kept record, `stored` finds the one of a name or None; identities are bytes, unlike those of any other type.
    `borne` yields the other ids of all that is stored.

    `is_same` says of a stored record and one of the file, both of one identity, whether the file says nothing new.
    `replacing` makes of them what stands in the store when the file's is to win, last changed at a sequence.
    `numbered` gives a number to an event whose kind bears one and that has none: a file holds no numbers. `leaves` is
    the state event that a record of the file leaves beside its own, None if none or if the store holds it.
    `refuse_more` is a CallerError if a store cannot take in so many more limited records.
    """

    tag: str
    event: type[Event]
    encode: Callable[[Kept], bytes]
    check: Callable[[Mapping[str, Any]], Named]
    check_quickly: Callable[[bytes], Named | None]
    decode: Callable[[bytes], Record]
    identify: Callable[[Kept], bytes]
    stored: Callable[[apsw.Connection, bytes], Kept | None]
    is_same: Callable[[Kept, Record], bool]
    replacing: Callable[[Kept, Record, int], Kept]
    borne: Callable[[apsw.Connection], Iterator[Borne]] = lambda connection: iter(())
    numbered: Callable[[Any, int], Any] = lambda event, number: event
    leaves: Callable[[apsw.Connection, Kept], Event | None] = lambda connection, kept: None
    refuse_more: Callable[[apsw.Connection, int], None] = lambda connection, count: None


class Waste(NamedTuple):
    """What compaction would take away: records that were deleted, changes that later ones or it supersede, and
    references to records that are gone.
    """

    deleted: int = 0
    superseded: int = 0
    dangling: int = 0


@dataclass(frozen=True, kw_only=True)
class Searchable:
    """Tables of a domain in a file of their own, which follow the index behind a watermark and can be lost any time.
    `create` is their SQL; `version` changes when what they hold for the same records does. `watermark` is the sequence
    of the change through which they know the index. `feed(search, index, pause)` lets them follow by one transaction
    and returns how many records, 0 when they know all; it calls `pause` between two records, which may wait or raise.
    `lag(index, watermark)` says how many changes of the index lie behind a watermark. `is_sound(search, index)` is a
    quick look whether the tables can be those of this index, `check(search, index)` says in sentences what they say
    otherwise than it.
    """

    create: str
    version: str
    watermark: Callable[[apsw.Connection], int]
    feed: Callable[[apsw.Connection, apsw.Connection, Callable[[], None]], int]
    is_sound: Callable[[apsw.Connection, apsw.Connection], bool]
    lag: Callable[[apsw.Connection, int], int]
    check: Callable[[apsw.Connection, apsw.Connection], list[str]]


class Command(Protocol):
    """An input left with the writer. It belongs to the log unless its `target` is a table file (convmem/targets.py)."""

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
        """Leave a command with the writer; its answer once it is durable, or a ConvmemError."""

    async def read(self, query: Callable[..., Result], *arguments: Any) -> Result:
        """Run `query(connection, *arguments)` on a read-only connection that sees everything acknowledged so far."""

    async def search(self, query: Callable[..., Result], *arguments: Any) -> Result | None:
        """The same, with the tables of search beside it, as schema `search`. None where there are none now, or they
        turned out to be damaged: whoever searches does without.
        """

    async def read_files(self, paths: Sequence[Path], query: Callable[..., Result], *arguments: Any) -> Result:
        """Run `query` on table files: the first is the connection's own, the others are its schemas `source_1`, … .
        StorageFault or Busy because of a file, QueryLimit if it takes too long.
        """

    async def copy_file(self, source: Path, target: Path) -> int:
        """Copy a table file, as it is at one moment, into a new file that appears whole; its bytes."""

    async def release_file(self, path: Path) -> bool:
        """Close a table file wherever it is open; False while a question still runs on it."""

    async def tables(self) -> Any:
        """The tables that are mounted (tables/mounts.py), once they are."""

    @property
    def reach(self) -> Reach:
        """How far the caller's token reaches."""

    @property
    def redacts_everything(self) -> bool:
        """True if secrets are to be taken out of whatever is written, not only of what hooks capture."""

    def now_ms(self) -> int:
        """The daemon's clock: ms since the epoch, for what is shown. What is stored is stamped by the writer."""

    async def save_export(
        self, filename: str | None, pieces: Callable[[apsw.Connection], Iterator[bytes]]
    ) -> Mapping[str, Any]:
        """Write pieces, read from one moment of the store, into a new file of the data directory's exports: {filename,
        size_bytes, sha256, preview}. Without a name it gets one from the clock. Conflict if the name is taken.
        """

    async def rebuild(self) -> Mapping[str, Any]:
        """Compact the log into a new generation: rebuilt, live, removed, dangling_removed, log_bytes_before,
        log_bytes_after, generation, duration_ms.
        """

    async def progress(self, done: float, total: float, sentence: str) -> None:
        """Tell the caller how far a long call has come, if it asked."""

    def health(self) -> Mapping[str, Any]:
        """Facts of the daemon and the store that need no index; answers in every phase."""


class Answer(NamedTuple):
    """What a tool answers: facts for programs and, if it is prose, the text for the model (else the facts as JSON)."""

    facts: Mapping[str, Any]
    text: str | None = None


@dataclass(frozen=True, kw_only=True)
class Tool:
    """One MCP tool: its name and description are contract, its input class is its schema."""

    name: str
    title: str
    description: str
    input: "type[Input]"
    handle: Callable[[Access, Any], Awaitable[Answer]]
    scope: Reach
    reads_only: bool
    destructive: bool = False
    idempotent: bool = False


@dataclass(frozen=True, kw_only=True)
class Domain:
    """A part of convmem with its own words.

    `create` is the SQL of its tables in the index (prefixed with its name). `made_ids` and `made_numbers` say which
    events hold an id or a number of the one counter (0: none) that the store made, so that none is made twice. `live`
    yields every live record as the state event that an empty index can be folded from, by rising sequence, without
    references to what is gone; `records` says how many a file would hold, `record_types` how each stands in one.
    `waste` is what compaction would take away, `check` returns violated invariants as sentences, `search` is what is
    kept beside the index, `table_deciders` decide for table files, `resource_tables` names those that can be read.
    """

    name: str
    create: str
    deciders: Mapping[type[Any], Decider]
    table_deciders: Mapping[type[Any], TableDecider] = field(default_factory=dict)
    appliers: Mapping[type[Event], Applier]
    made_ids: Mapping[type[Event], Callable[[Any], str]] = field(default_factory=dict)
    made_numbers: Mapping[type[Event], Callable[[Any], int]] = field(default_factory=dict)
    live: Callable[[apsw.Connection], Iterator[Kept]] = lambda connection: iter(())
    records: Callable[[apsw.Connection], int] = lambda connection: 0
    record_types: tuple[RecordType, ...] = ()
    waste: Callable[[apsw.Connection], Waste] = lambda connection: Waste()
    check: Callable[[apsw.Connection], list[str]] = lambda connection: []
    search: Searchable | None = None
    tools: tuple[Tool, ...] = ()
    resources: tuple["Resource", ...] = ()
    resource_tables: Callable[[Access], Awaitable[Sequence[str]]] | None = None
