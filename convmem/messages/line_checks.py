"""A stranger's line of JSONL that claims to be a message: every field is checked before anything is changed.

The rules are those of a tool's arguments (fields.py) without their leniency: a file was written by a program. They take
some twenty microseconds, and nearly every line was written by convmem itself. So a line is first held against the same
rules in a stricter form that msgspec checks while it decodes: texts so short in code points that no bound in bytes can
matter, ids in upper case. If it passes and encodes back to the very same bytes, it holds no second key of one name, no
odd number and no escape that we would not write. Whatever does not pass is looked at closely.
"""

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType
from pydantic import Field

from convmem.domain import Named, Reference
from convmem.errors import Invalid
from convmem.inputs import Input, exact
from convmem.limits import (
    CLIENT_BYTES_MAX,
    CONTENT_BYTES_MAX,
    DEVICE_BYTES_MAX,
    IMPORTANCE_MAX,
    PROJECT_BYTES_MAX,
    RELATION_TYPE_BYTES_MAX,
    RELATIONS_MAX,
    REVISION_MAX,
    SESSION_ID_BYTES_MAX,
    SOURCES_MAX,
    SUMMARY_BYTES_MAX,
    TAG_BYTES_MAX,
    TAGS_MAX,
    TIME_MS_MAX,
    TOOL_CALL_ID_BYTES_MAX,
    TRANSPORT_BYTES_MAX,
)
from convmem.messages import fields
from convmem.messages.model import CAPTURE_ROLES, CaptureKind, Kind, Role, Tier, packed
from convmem.record_lines import OriginRead, Time, escaped

TAG = "message"
IDENTITY = b"m"


class RelationRead(Input):
    """A link."""

    type: fields.RelationType
    message_id: fields.MessageId


class MetadataRead(Input):
    """What is said about the message."""

    tool_call_id: fields.ToolCallId | None = None
    tags: fields.Tags = Field(default_factory=list)
    memory_tier: Tier = "mid"
    memory_kind: Kind = "conversation"
    importance: Annotated[int, Field(ge=0, le=IMPORTANCE_MAX)] = 0
    summary: fields.Summary | None = None
    relations: Annotated[list[RelationRead], Field(max_length=RELATIONS_MAX)] = Field(default_factory=list)
    source_message_ids: Annotated[list[fields.MessageId], Field(max_length=SOURCES_MAX)] = Field(default_factory=list)
    project: fields.Project | None = None


class CaptureRead(Input):
    """What is known of a message that a hook captured."""

    kind: CaptureKind
    event_id: fields.EventId
    tool: fields.CaptureTool | None = None
    status: fields.CaptureStatus | None = None
    directory: fields.CaptureDirectory | None = None


class ImportedRead(Input):
    """Where an imported message is from."""

    format: fields.SourceName
    conversation: fields.SourceName
    message: fields.SourceName
    source: fields.Fingerprint
    digest: fields.Fingerprint
    account: fields.SourceName | None = None


class MessageRead(Input):
    """A line that says what a message is."""

    type: Literal["message"]
    message_id: fields.MessageId
    session_id: fields.SessionId
    timestamp: Time
    updated_at: Time
    revision: Annotated[int, Field(ge=1, le=REVISION_MAX)]
    role: Role
    content: fields.Content
    metadata: MetadataRead
    origin: OriginRead
    capture: CaptureRead | None = None
    imported: ImportedRead | None = None


def check(value: Mapping[str, Any]) -> Named:
    """Check every field of a line; Invalid or ContentTooLarge with `field` for the first that is wrong."""
    given = exact(MessageRead, value)
    if given.updated_at < given.timestamp:
        raise Invalid("updated_at must not be before timestamp", field="updated_at")
    if given.capture is not None and given.role != CAPTURE_ROLES[given.capture.kind]:
        raise Invalid("capture.kind does not go with this role", field="capture.kind")
    targets = [relation.message_id for relation in given.metadata.relations]
    return _named(given.message_id, targets, given.metadata.source_message_ids)


def _named(message_id: str, targets: Iterable[str], sources: Iterable[str]) -> Named:
    references = [
        *((f"metadata.relations.{number}.message_id", target) for number, target in enumerate(targets)),
        *((f"metadata.source_message_ids.{number}", source) for number, source in enumerate(sources)),
    ]
    return Named(identity(message_id), tuple(Reference(field, identity(target)) for field, target in references))


def identity(message_id: str) -> bytes:
    """Which record of a file, or of a store, a message is: small, since a million of them are remembered."""
    return IDENTITY + packed(message_id)


# A code point takes four bytes of UTF-8 or less.
CODE_POINT_BYTES_MAX = 4
NAME = "^[^\0]*$"


def _plain(bytes_max: int, *, code_points_min: int = 0, pattern: str | None = None) -> Any:
    meta = Meta(min_length=code_points_min, max_length=bytes_max // CODE_POINT_BYTES_MAX, pattern=pattern)
    return Annotated[str, meta]


_Id: Any = Annotated[str, Meta(pattern="^[0-7][0-9A-HJKMNP-TV-Z]{25}$", min_length=26, max_length=26)]
_Tag: Any = _plain(TAG_BYTES_MAX, code_points_min=1, pattern=NAME)
_Time: Any = Annotated[int, Meta(ge=0, le=TIME_MS_MAX)]


class _Relation(msgspec.Struct, forbid_unknown_fields=True):
    type: _plain(RELATION_TYPE_BYTES_MAX, code_points_min=1, pattern=NAME)  # type: ignore[valid-type]
    message_id: _Id


class _Metadata(msgspec.Struct, forbid_unknown_fields=True):
    tool_call_id: _plain(TOOL_CALL_ID_BYTES_MAX, pattern=NAME) | UnsetType = UNSET  # type: ignore[valid-type]
    tags: Annotated[tuple[_Tag, ...], Meta(max_length=TAGS_MAX)] = ()
    memory_tier: Tier = "mid"
    memory_kind: Kind = "conversation"
    importance: Annotated[int, Meta(ge=0, le=IMPORTANCE_MAX)] = 0
    summary: _plain(SUMMARY_BYTES_MAX) | UnsetType = UNSET  # type: ignore[valid-type]
    relations: Annotated[tuple[_Relation, ...], Meta(max_length=RELATIONS_MAX)] = ()
    source_message_ids: Annotated[tuple[_Id, ...], Meta(max_length=SOURCES_MAX)] = ()
    project: _plain(PROJECT_BYTES_MAX, pattern=NAME) | UnsetType = UNSET  # type: ignore[valid-type]


class _Origin(msgspec.Struct, forbid_unknown_fields=True):
    device: _plain(DEVICE_BYTES_MAX, code_points_min=1, pattern=NAME)  # type: ignore[valid-type]
    transport: _plain(TRANSPORT_BYTES_MAX, pattern=NAME)  # type: ignore[valid-type]
    client: _plain(CLIENT_BYTES_MAX) | UnsetType = UNSET  # type: ignore[valid-type]


class _Line(msgspec.Struct, tag=TAG, forbid_unknown_fields=True):
    message_id: _Id
    session_id: _plain(SESSION_ID_BYTES_MAX, code_points_min=1, pattern=NAME)  # type: ignore[valid-type]
    timestamp: _Time
    updated_at: _Time
    revision: Annotated[int, Meta(ge=1, le=REVISION_MAX)]
    role: Role
    content: _plain(CONTENT_BYTES_MAX)  # type: ignore[valid-type]
    metadata: _Metadata
    origin: _Origin


_DECODER = msgspec.json.Decoder(_Line)
_ENCODER = msgspec.json.Encoder()


def check_quickly(line: bytes) -> Named | None:
    """What `check` says of a line that stands just as we write it and is near no bound; None: look closely."""
    try:
        read = _DECODER.decode(line)
    except msgspec.DecodeError:
        return None
    metadata = read.metadata
    has_twins = len(metadata.tags) != len(set(metadata.tags))
    if read.updated_at < read.timestamp or has_twins or escaped(_ENCODER.encode(read)) != line:
        return None
    if metadata.relations or metadata.source_message_ids:
        targets = [relation.message_id for relation in metadata.relations]
        return _named(read.message_id, targets, metadata.source_message_ids)
    return Named(identity(read.message_id))
