"""The nouns of an import: what a source holds in our words, what could not be read, and what a format is.

A format makes two things of its sources: first entries, one for each conversation, with its time, so that they can be
taken in by their time; then, when an entry's turn comes, its records. Both are generators: a source may be larger than
the memory. A record names itself by the ids of its source, which are what makes a second import find it again.

Rejected: commands of the store here. A format need not know how long a session's name may be, what is a secret, or
which clock counts.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from convmem.limits import IMPORT_SKIPPED_SHOWN_MAX

if TYPE_CHECKING:
    from convmem.importers.sources import Source

Role = Literal["user", "assistant", "system"]
Kind = Literal["conversation", "episode", "semantic", "procedure", "preference", "summary"]

# Tags of a message that says more than what was said. Formats use these and no others for the same thing.
BRANCH = "branch"  # Said, and then replaced by another turn: not on the way from the first to the last message.
THINKING = "thinking"
TOOL_CALL, TOOL_RESULT = "tool_call", "tool_result"
HIDDEN = "hidden"  # Context that no person wrote and no person saw.
SUBAGENT = "subagent"
UNKNOWN = "unknown"  # A block of a kind that is not known here, kept as its JSON.


class Link(msgspec.Struct, frozen=True, omit_defaults=True):
    """This message points at another of the same source, and says how."""

    type: str
    conversation: str
    id: str


class Captured(msgspec.Struct, frozen=True, omit_defaults=True):
    """The message is an interaction that a hook captured."""

    kind: Literal["prompt", "tool_call", "error"]
    tool: str | None = None
    status: str | None = None
    directory: str | None = None


class Message(msgspec.Struct, frozen=True, omit_defaults=True, tag="message", kw_only=True):
    """One thing said. `conversation` and `id` are the source's own; `id` is unlike every other of the conversation.

    `at` is ms since the Unix epoch; None where the source does not say, then it is the time of what stands before it.
    """

    conversation: str
    id: str
    role: Role
    content: str
    at: int | None = None
    title: str | None = None
    account: str | None = None
    project: str | None = None
    tags: tuple[str, ...] = ()
    kind: Kind = "conversation"
    tool_call_id: str | None = None
    importance: int = 0
    links: tuple[Link, ...] = ()
    captured: Captured | None = None


class Preference(msgspec.Struct, frozen=True, omit_defaults=True, tag="preference", kw_only=True):
    """Something that holds of the user. `confidence` from 0 to 1."""

    category: str
    key: str
    value: str
    confidence: float | None = None
    source: str | None = None
    project: str | None = None
    at: int | None = None


class Lesson(msgspec.Struct, frozen=True, omit_defaults=True, tag="lesson", kw_only=True):
    """Something that was learned from a mistake."""

    situation: str
    mistake: str
    correction: str
    project: str | None = None
    at: int | None = None


class Section(msgspec.Struct, frozen=True, omit_defaults=True, tag="section", kw_only=True):
    """A part of the user's profile."""

    section: str
    content: str
    at: int | None = None


Record = Message | Preference | Lesson | Section


class Skipped(NamedTuple):
    """What was not taken in: where it stands in the source (a person can find it there), and why."""

    where: str
    why: str


class Notes:
    """What a reader has to say beside the records. Nothing is left out in silence."""

    def __init__(self) -> None:
        self.skipped: list[Skipped] = []
        self.skipped_count = 0
        # Kinds of lines and blocks that are no conversation, or not known here, and how many there were of each.
        self.passed_over: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()

    def skip(self, where: str, why: str) -> None:
        """Something that should have become a record does not. The first ones are named."""
        self.skipped_count += 1
        if len(self.skipped) < IMPORT_SKIPPED_SHOWN_MAX:
            self.skipped.append(Skipped(where, why))

    def pass_over(self, kind: str) -> None:
        """Something is no part of a conversation, by the rules of its format."""
        self.passed_over[kind[:64]] += 1

    def keep_raw(self, kind: str) -> None:
        """A block of a kind that is not known here is kept as its JSON."""
        self.unknown[kind[:64]] += 1


class Entry(NamedTuple):
    """One conversation, or one body of memory: `read` makes its records, in order. It may be called long afterwards.

    `at` is when it began, in ms since the Unix epoch, None if nobody knows; `where` is for people.
    """

    where: str
    at: int | None
    read: Callable[[], Iterator[Record]]
    title: str | None = None


class Sample(NamedTuple):
    """The beginning of a source: its first JSON values (the elements of an array, the values of its lines, or the one
    value that it is; what is cut off is left out), or the names of its tables and their columns if it is a database.
    """

    values: tuple[Any, ...] = ()
    tables: dict[str, frozenset[str]] = {}  # noqa: RUF012


class Format(NamedTuple):
    """One format: `fits` tells by the shape of a source whether it is of it, `entries` reads all sources of it that
    were given together, each told with a name that a person knows.
    """

    name: str
    fits: Callable[[Sample, "Source"], bool]
    entries: Callable[[Sequence["Source"], Notes], Iterator[Entry]]
