"""What another program's file says, as a message: the command that takes it in, and the rule by which.

    unknown                  stored, with the file's own time
    known, saying the same   same: nothing is written, also where somebody has changed the message here since
    known, saying otherwise  updated: the fields that differ from what is stored
    deleted here             stays_deleted, unless it is to be resurrected

The idea: a message is known by its source, the hash of the ids that the other program gave it. What the file said when
it was last taken in is remembered as a digest, so that an export which says nothing new changes nothing.

Rejected: to compare with what is stored. A message that was corrected here would be put back by the next export.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import apsw
import msgspec
from pydantic import Field

from convmem.domain import Decided, Decider, Stamp
from convmem.errors import Conflict
from convmem.fingerprints import fingerprint
from convmem.inputs import Input
from convmem.limits import METADATA_BYTES_MAX, RELATIONS_MAX, REVISION_MAX
from convmem.messages import fields, queries
from convmem.messages.events import MessageUpdated, MessageWritten
from convmem.messages.model import CAPTURE_ROLES, Capture, CaptureKind, Imported, Kind, Message, Relation, Role

OUTCOMES = ("stored", "same", "updated", "stays_deleted")


class LinkGiven(Input):
    """A relation to another message of the same format and account."""

    type: fields.RelationType
    conversation: fields.SourceName
    id: fields.SourceName


class CapturedGiven(Input):
    """What is known of an interaction that a hook captured elsewhere."""

    kind: CaptureKind
    tool: fields.CaptureTool | None = None
    status: fields.CaptureStatus | None = None
    directory: fields.CaptureDirectory | None = None


class ImportMessage(Input):
    """Take in a message of another program's file; `format` to `id` are what it is known by."""

    format: fields.SourceName
    account: fields.SourceName | None = None
    conversation: fields.SourceName
    id: fields.SourceName
    session_id: fields.SessionId
    role: Role
    content: fields.Content
    at: fields.Time | None = None
    tags: fields.Tags = Field(default_factory=list)
    kind: Kind = "conversation"
    importance: fields.Importance = 0
    summary: fields.Summary | None = None
    project: fields.Project | None = None
    tool_call_id: fields.ToolCallId | None = None
    links: Annotated[list[LinkGiven], Field(max_length=RELATIONS_MAX)] = Field(default_factory=list)
    captured: CapturedGiven | None = None
    resurrect: bool = False

    @property
    def size_bytes(self) -> int:
        return super().size_bytes + len(self.content.encode()) + METADATA_BYTES_MAX

    def source_of(self, conversation: str, message_id: str) -> bytes:
        """The source of a message of this format and account: FINGERPRINT_BYTES."""
        return fingerprint(msgspec.json.encode((self.format, self.account, conversation, message_id)))

    @property
    def digest(self) -> bytes:
        """What the file says of it, without what it is known by."""
        said = (self.role, self.content, self.tags, self.kind, self.importance, self.summary, self.project)
        links = [(link.type, link.conversation, link.id) for link in self.links]
        return fingerprint(msgspec.json.encode((*said, self.tool_call_id, links)))


def import_message(connection: apsw.Connection, command: ImportMessage, stamp: Stamp) -> Decided:
    """{outcome, message_id?, links_missing?}: see above."""
    source = command.source_of(command.conversation, command.id)
    known = queries.of_source(connection, source)
    if known is not None:
        return _again(connection, command, known)
    if not command.resurrect and queries.is_forgotten(connection, source):
        return Decided({"outcome": "stays_deleted"})
    relations = _relations(connection, command)
    captured = command.captured
    event = MessageWritten(
        message_id=stamp.ulid,
        session_id=command.session_id,
        role=command.role if captured is None else CAPTURE_ROLES[captured.kind],
        content=command.content,
        tool_call_id=command.tool_call_id,
        tags=tuple(command.tags),
        memory_tier="mid" if captured is None else "short",
        memory_kind=command.kind,
        importance=command.importance,
        summary=command.summary,
        relations=relations,
        project=command.project,
        timestamp=command.at,
        imported=_imported(command, source),
        capture=_capture(command),
        number=None if captured is None else stamp.number,
    )
    return Decided(_answer(command, "stored", stamp.ulid, relations), (event,))


def _again(connection: apsw.Connection, command: ImportMessage, known: Message) -> Decided:
    """A message that is there already."""
    imported = known.imported
    assert imported is not None, "it was found by its source"
    if imported.digest == command.digest.hex():
        return Decided({"outcome": "same", "message_id": known.message_id})
    if known.revision == REVISION_MAX:
        raise Conflict("the message has been changed as often as it can be", current_revision=known.revision)
    relations = _relations(connection, command)
    said: dict[str, Any] = {
        "tool_call_id": command.tool_call_id,
        "tags": tuple(command.tags),
        "memory_kind": command.kind,
        "importance": command.importance,
        "summary": command.summary,
        "relations": relations,
        "project": command.project,
    }
    changes = {name: value for name, value in said.items() if value != getattr(known.metadata, name)}
    if command.content != known.content:
        changes["content"] = command.content
    event = MessageUpdated(
        message_id=known.message_id,
        revision=known.revision + 1,
        imported=msgspec.structs.replace(imported, digest=command.digest.hex()),
        **changes,
    )
    return Decided(_answer(command, "updated", known.message_id, relations), (event,))


def _relations(connection: apsw.Connection, command: ImportMessage) -> tuple[Relation, ...]:
    """The links whose targets are there."""
    found = (
        (link, queries.of_source(connection, command.source_of(link.conversation, link.id))) for link in command.links
    )
    return tuple(Relation(type=link.type, message_id=target.message_id) for link, target in found if target is not None)


def _answer(
    command: ImportMessage, outcome: str, message_id: str, relations: tuple[Relation, ...]
) -> Mapping[str, Any]:
    missing = len(command.links) - len(relations)
    return {"outcome": outcome, "message_id": message_id, **({"links_missing": missing} if missing else {})}


def _imported(command: ImportMessage, source: bytes) -> Imported:
    return Imported(
        format=command.format,
        conversation=command.conversation,
        message=command.id,
        source=source.hex(),
        digest=command.digest.hex(),
        account=command.account,
    )


def _capture(command: ImportMessage) -> Capture | None:
    captured = command.captured
    if captured is None:
        return None
    return Capture(
        kind=captured.kind,
        event_id=f"import:{command.source_of(command.conversation, command.id).hex()}",
        tool=captured.tool,
        status=captured.status,
        directory=captured.directory,
    )


DECIDERS: Mapping[type[Any], Decider] = {ImportMessage: import_message}
