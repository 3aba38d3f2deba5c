"""What a caller may ask of messages: checked once, here, so that everything behind it can rely on it.

`null` for an optional argument means that it was not given; inside update_message's `metadata`, a merge patch
(RFC 7396, one level deep), it means "take away". An argument that has no meaning in the view asked for is refused:
ignored, a misspelt guard would do nothing.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple, Self

import msgspec
from pydantic import Field, WithJsonSchema, model_validator

from convmem.errors import Invalid
from convmem.fingerprints import fingerprint
from convmem.inputs import FromJSON, Input, Whole
from convmem.limits import (
    CAPTURE_FACTS_BYTES_MAX,
    CONTENT_SLICE_BYTES_DEFAULT,
    CONTENT_SLICE_BYTES_MAX,
    CONTEXT_NEIGHBOURS_DEFAULT,
    CONTEXT_NEIGHBOURS_MAX,
    EXPORT_LIMIT_DEFAULT,
    EXPORT_LIMIT_MAX,
    HISTORY_LIMIT_DEFAULT,
    HISTORY_LIMIT_MAX,
    METADATA_BYTES_MAX,
    RELATION_DEPTH_DEFAULT,
    RELATION_DEPTH_MAX,
    RELATIONS_MAX,
    REPLY_BYTES_DEFAULT,
    SEARCH_CONTEXT_MAX,
    SEARCH_LIMIT_DEFAULT,
    SEARCH_LIMIT_MAX,
    SESSIONS_LIMIT_DEFAULT,
    SESSIONS_LIMIT_MAX,
    SOURCES_MAX,
)
from convmem.messages import fields
from convmem.messages.model import METADATA_DEFAULTS, METADATA_FIELDS, CaptureKind, Kind, Metadata, Relation, Role, Tier


class RelationGiven(Input):
    """A link."""

    type: fields.RelationType = Field(description="1-64 bytes.")
    message_id: fields.MessageId = Field(description="A live message.")


class MetadataGiven(Input):
    """Metadata as it comes in: of write_message whole, of update_message the keys that change."""

    tool_call_id: fields.ToolCallId | None = Field(default=None, description="Max 256 bytes.")
    tags: fields.Tags | None = Field(default=None, description="Max 32, each 1-128 bytes.")
    memory_tier: Tier | None = Field(default=None, description="Label; default mid.")
    memory_kind: Kind | None = Field(default=None, description="Default conversation.")
    importance: fields.Importance | None = Field(default=None, description="Default 0.")
    summary: fields.Summary | None = Field(default=None, description="Max 4096 bytes.")
    relations: Annotated[list[RelationGiven], Field(max_length=RELATIONS_MAX)] | None = Field(
        default=None, description="Max 32."
    )
    source_message_ids: Annotated[list[fields.MessageId], Field(max_length=SOURCES_MAX)] | None = Field(
        default=None, description="Live messages it was made from, max 64."
    )
    project: fields.Project | None = Field(default=None, description="Scope, max 256 bytes.")

    def values(self) -> dict[str, Any]:
        """The keys that were given, as Metadata holds them; for null the value that an absent key has."""
        return {name: self._value(name) for name in METADATA_FIELDS if name in self.model_fields_set}

    def _value(self, name: str) -> Any:
        value = getattr(self, name)
        if value is None:
            return getattr(METADATA_DEFAULTS, name)
        if name == "relations":
            return tuple(Relation(type=given.type, message_id=given.message_id) for given in value)
        return tuple(value) if isinstance(value, list) else value


class WriteMessage(Input):
    """Store one message."""

    session_id: fields.SessionId = Field(description="Conversation it belongs to, 1-256 bytes.")
    role: Role = Field(description="Who said it.")
    content: fields.Content = Field(description="Text, kept exactly as sent, max 1 MiB.")
    metadata: Annotated[MetadataGiven | None, FromJSON] = Field(default=None, description="Facts about it.")
    idempotency_key: fields.IdempotencyKey | None = Field(
        default=None, description="Unique text, max 128 bytes: a repeated call stores nothing twice."
    )

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + len(self.content.encode()) + (METADATA_BYTES_MAX if self.metadata else 0)

    def metadata_filled(self) -> Metadata:
        """The metadata with its defaults."""
        return METADATA_DEFAULTS if self.metadata is None else Metadata(**self.metadata.values())

    def fingerprints(self) -> tuple[bytes, bytes]:
        """16-byte prefixes of SHA-256: of the idempotency key, and of all other arguments as canonical JSON.

        Canonical: defaults filled in, keys sorted, nothing optional that is absent, no white space.
        """
        assert self.idempotency_key is not None
        arguments = {
            "session_id": self.session_id,
            "role": self.role,
            "content": self.content,
            "metadata": self.metadata_filled().facts(),
        }
        canonical = msgspec.json.encode(arguments, order="sorted")
        return fingerprint(self.idempotency_key.encode()), fingerprint(canonical)


class UpdateMessage(Input):
    """Change content, metadata or both."""

    message_id: fields.MessageId = Field(description="The message to change.")
    content: fields.Content | None = Field(default=None, description="New text, max 1 MiB.")
    # A patch is described in words: null, which takes a key away, cannot be said in the plain schemas clients take.
    metadata: Annotated[MetadataGiven | None, FromJSON, WithJsonSchema({"type": "object"})] = Field(
        default=None,
        description="Merge patch, keys as in write_message: a value replaces, null removes, an absent key stays.",
    )
    expected_revision: fields.Revision | None = Field(
        default=None, description="CONFLICT if the message is at another revision."
    )

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + len((self.content or "").encode()) + (METADATA_BYTES_MAX if self.metadata else 0)


class DeleteMessage(Input):
    """Take a message away."""

    message_id: fields.MessageId = Field(description="The message to delete.")
    session_id: fields.SessionId | None = Field(
        default=None, description="Guard: refused if the message is in another session."
    )


class CaptureEvent(Input):
    """What a hook saw; once it is cleaned (capture.py), the command that stores it."""

    event_id: fields.EventId
    kind: CaptureKind
    session_id: fields.SessionId
    content: fields.Content
    at: fields.Time | None = None
    project: fields.Project | None = None
    tool: fields.CaptureTool | None = None
    status: fields.CaptureStatus | None = None
    directory: fields.CaptureDirectory | None = None

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + len(self.content.encode()) + CAPTURE_FACTS_BYTES_MAX


class View(NamedTuple):
    """What a view of read_messages needs, what else it takes, and how many (of content: bytes) it gives at once."""

    needs: str | None
    takes: frozenset[str]
    limit_default: int
    limit_max: int


VIEWS: Mapping[str, View] = {
    "history": View(
        "session_id", frozenset({"project", "limit", "cursor", "order"}), HISTORY_LIMIT_DEFAULT, HISTORY_LIMIT_MAX
    ),
    "content": View(
        "message_id",
        frozenset({"offset", "limit", "expected_revision"}),
        CONTENT_SLICE_BYTES_DEFAULT,
        CONTENT_SLICE_BYTES_MAX,
    ),
    "context": View("message_id", frozenset({"before", "after", "relation_depth"}), 0, 0),
    "sessions": View(None, frozenset({"project", "limit", "cursor"}), SESSIONS_LIMIT_DEFAULT, SESSIONS_LIMIT_MAX),
    "export": View(None, frozenset({"project", "limit", "cursor"}), EXPORT_LIMIT_DEFAULT, EXPORT_LIMIT_MAX),
}
EVERY_VIEW = frozenset({"view", "max_bytes"})


class ReadMessages(Input):
    """Read in one of five views."""

    view: Literal["history", "content", "context", "sessions", "export"] = Field(
        description="history: a session's messages; content: a slice of one text; context: a message, its "
        "neighbours and relations; sessions: list them; export: JSONL lines."
    )
    session_id: fields.SessionId | None = Field(default=None, description="For history.")
    message_id: fields.MessageId | None = Field(default=None, description="For content, context.")
    project: fields.Project | None = Field(default=None, description="Filter: history, sessions, export.")
    limit: fields.Entries | None = Field(
        default=None, description="Entries, 50, max 500; content: bytes, 4096, max 65536."
    )
    cursor: fields.Cursor | None = Field(default=None, description="next_cursor of the page before.")
    order: Literal["asc", "desc"] = Field(default="asc", description="history: oldest or newest first.")
    offset: Whole = Field(default=0, ge=0, description="content: byte to start at.")
    expected_revision: fields.Revision | None = Field(default=None, description="content: CONFLICT if it differs.")
    before: Whole = Field(
        default=CONTEXT_NEIGHBOURS_DEFAULT, ge=0, le=CONTEXT_NEIGHBOURS_MAX, description="context: neighbours."
    )
    after: Whole = Field(
        default=CONTEXT_NEIGHBOURS_DEFAULT, ge=0, le=CONTEXT_NEIGHBOURS_MAX, description="context: neighbours."
    )
    relation_depth: Whole = Field(
        default=RELATION_DEPTH_DEFAULT, ge=0, le=RELATION_DEPTH_MAX, description="context: steps along relations."
    )
    max_bytes: fields.ReplyBytes | None = Field(default=None, description="Size of the reply, 65536.")

    @model_validator(mode="after")
    def _fits_view(self) -> Self:
        view = VIEWS[self.view]
        for name, field in type(self).model_fields.items():
            value = getattr(self, name)
            if name == view.needs and value is None:
                raise Invalid(f"{name} is required by view {self.view}", field=name)
            if name not in view.takes | EVERY_VIEW | {view.needs} and value != field.default:
                raise Invalid(f"{name} has no meaning in view {self.view}", field=name)
        if self.limit is not None and self.limit > view.limit_max:
            raise Invalid(f"limit must be at most {view.limit_max} in view {self.view}", field="limit")
        return self

    @property
    def entries_max(self) -> int:
        """How many entries (of content: bytes) are asked for."""
        return VIEWS[self.view].limit_default if self.limit is None else self.limit

    @property
    def reply_bytes_max(self) -> int:
        """How large the whole reply may be."""
        return REPLY_BYTES_DEFAULT if self.max_bytes is None else self.max_bytes


class SearchMessages(Input):
    """Find messages by text."""

    query: fields.Query = Field(description="Plain text, 1-1024 bytes; no query language.")
    match: Literal["auto", "exact", "any"] = Field(
        default="auto", description="exact: query as substring; any: any of its words; auto: exact, then any."
    )
    session_id: fields.SessionId | None = Field(default=None, description="Filter.")
    project: fields.Project | None = Field(default=None, description="Filter.")
    role: Role | None = Field(default=None, description="Filter.")
    kind: Kind | None = Field(default=None, description="Filter: memory_kind.")
    tier: Tier | None = Field(default=None, description="Filter: memory_tier.")
    tag: fields.Tag | None = Field(default=None, description="Filter: exact tag.")
    min_importance: fields.Importance | None = Field(default=None, description="Filter.")
    since: fields.Time | None = Field(default=None, description="Earliest timestamp, ms.")
    until: fields.Time | None = Field(default=None, description="Latest timestamp, ms.")
    limit: Whole = Field(default=SEARCH_LIMIT_DEFAULT, ge=1, le=SEARCH_LIMIT_MAX, description="How many results.")
    context_before: Whole = Field(default=0, ge=0, le=SEARCH_CONTEXT_MAX, description="Neighbours before.")
    context_after: Whole = Field(default=0, ge=0, le=SEARCH_CONTEXT_MAX, description="Neighbours after.")


class SearchCaptured(SearchMessages):
    """The same with filters that no caller sets, for the tools of memory: only what hooks captured, of one kind; only
    what belongs to no project.
    """

    captured_kind: CaptureKind | None = None
    unassigned: bool = False


class RebuildIndex(Input):
    """Compact the log and make its index anew."""


class GetSystemHealth(Input):
    """How the daemon is."""
