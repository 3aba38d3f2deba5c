"""The rules of messages: what a command may do to what is there, as facts or as a refusal.

Deciding changes nothing and knows neither clock nor dice: the stamp brings time, place and a fresh id. An answer is the
receipt: it is given to the caller only once the events are on the disk.
"""

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

import apsw
import msgspec

from convmem.domain import Decided, Decider, Stamp
from convmem.errors import Conflict, NotFound, SessionMismatch
from convmem.limits import CAPTURE_AHEAD_MS_MAX, CAPTURE_TWIN_MS_MAX, REVISION_MAX
from convmem.messages import imports, queries
from convmem.messages.events import FingerprintKept, MessageDeleted, MessageUpdated, MessageWritten, Receipt
from convmem.messages.fingerprints import mark
from convmem.messages.inputs import CaptureEvent, DeleteMessage, UpdateMessage, WriteMessage
from convmem.messages.model import CAPTURE_ROLES, Capture, Message, Metadata


def write_message(connection: apsw.Connection, command: WriteMessage, stamp: Stamp) -> Decided:
    """A new message; or, for an idempotency key this device used before, the answer it was given then."""
    receipt = None
    if command.idempotency_key is not None:
        key, arguments = command.fingerprints()
        known = queries.read_receipt(connection, stamp.place.origin.device, key)
        if known is not None:
            return _replayed(known, arguments)
        receipt = Receipt(key, arguments)
    metadata = command.metadata_filled()
    _refuse_dead_targets(
        connection, {"relations": metadata.relations, "source_message_ids": metadata.source_message_ids}
    )
    event = MessageWritten(
        message_id=stamp.ulid,
        session_id=command.session_id,
        role=command.role,
        content=command.content,
        receipt=receipt,
        **msgspec.structs.asdict(metadata),
    )
    answer = _written(
        message_id=stamp.ulid,
        session_id=command.session_id,
        timestamp=stamp.place.at_ms,
        sequence=stamp.place.sequence,
        sha256=_sha256(command.content),
    )
    return Decided(answer, (event,))


def _replayed(known: queries.KnownReceipt, arguments: bytes) -> Decided:
    if known.arguments != arguments:
        raise Conflict("this idempotency_key was used with other arguments", field="idempotency_key")
    answer = _written(
        message_id=known.message_id,
        session_id=known.session_id,
        timestamp=known.timestamp,
        sequence=known.sequence,
        sha256=known.sha256.hex(),
    )
    return Decided({**answer, "replayed": True})


def _written(*, message_id: str, session_id: str, timestamp: int, sequence: int, sha256: str) -> dict[str, Any]:
    return {
        "message_id": message_id,
        "session_id": session_id,
        "timestamp": timestamp,
        "revision": 1,
        "sequence": str(sequence),
        "sha256": sha256,
    }


def capture_event(connection: apsw.Connection, command: CaptureEvent, stamp: Stamp) -> Decided:
    """What a hook saw, as a message: once, however often it comes, and once if two hooks saw it."""
    now = stamp.place.at_ms
    timestamp = now if command.at is None else min(command.at, now + CAPTURE_AHEAD_MS_MAX)
    left = mark(command.session_id, command.event_id, command.kind, command.content)
    if queries.is_known(connection, left):
        return Decided({"replayed": True})
    if queries.has_twin(connection, left, timestamp, CAPTURE_TWIN_MS_MAX):
        # Without its text: a third event is held against the one that is stored, else they would chain for ever.
        twin = FingerprintKept(session=left.session, event=left.event, text=b"", timestamp=timestamp)
        return Decided({"replayed": True}, (twin,))
    event = MessageWritten(
        message_id=stamp.ulid,
        session_id=command.session_id,
        role=CAPTURE_ROLES[command.kind],
        content=command.content,
        memory_tier="short",
        project=command.project,
        timestamp=timestamp,
        capture=Capture(
            kind=command.kind,
            event_id=command.event_id,
            tool=command.tool,
            status=command.status,
            directory=command.directory,
        ),
        number=stamp.number,
    )
    return Decided({"replayed": False, "message_id": stamp.ulid, "number": stamp.number}, (event,))


def update_message(connection: apsw.Connection, command: UpdateMessage, stamp: Stamp) -> Decided:
    """The fields that really change; none: the answer of the current revision, and nothing is written."""
    known = queries.read_message(connection, command.message_id)
    if known is None:
        raise _not_there(command.message_id)
    if command.expected_revision not in (None, known.revision):
        raise Conflict("the message changed since it was read", current_revision=known.revision)
    changes = _changes(known.metadata, command)
    if command.content is not None and command.content != known.content:
        changes = {"content": command.content, **changes}
    if not changes:
        return Decided(_updated(known, known.revision, known.updated_at, [], known.changed_sequence, known.content))
    if known.revision == REVISION_MAX:
        raise Conflict("the message has been changed as often as it can be", current_revision=known.revision)
    _refuse_dead_targets(connection, changes)
    event = MessageUpdated(message_id=known.message_id, revision=known.revision + 1, **changes)
    updated_at = max(stamp.place.at_ms, known.updated_at)
    changed = [name if name == "content" else f"metadata.{name}" for name in changes]
    content = changes.get("content", known.content)
    answer = _updated(known, event.revision, updated_at, changed, stamp.place.sequence, content)
    return Decided(answer, (event,))


def _changes(known: Metadata, command: UpdateMessage) -> dict[str, Any]:
    """The keys of the merge patch whose value differs from what is there."""
    given = {} if command.metadata is None else command.metadata.values()
    return {name: value for name, value in given.items() if value != getattr(known, name)}


def _updated(
    known: Message, revision: int, updated_at: int, changed: list[str], sequence: int, content: str
) -> dict[str, Any]:
    return {
        "message_id": known.message_id,
        "revision": revision,
        "updated_at": updated_at,
        "changed": changed,
        "sequence": str(sequence),
        "sha256": _sha256(content),
    }


def delete_message(connection: apsw.Connection, command: DeleteMessage, stamp: Stamp) -> Decided:
    """The message is gone, if it is there and in the session that the guard names."""
    session_id = queries.read_session_id(connection, command.message_id)
    if session_id is None:
        raise _not_there(command.message_id)
    if command.session_id not in (None, session_id):
        raise SessionMismatch("the message is in another session", field="session_id")
    answer = {"message_id": command.message_id, "deleted": True, "sequence": str(stamp.place.sequence)}
    return Decided(answer, (MessageDeleted(message_id=command.message_id),))


def _not_there(message_id: str) -> NotFound:
    return NotFound("there is no message of this id", field="message_id", message_id=message_id)


def _refuse_dead_targets(connection: apsw.Connection, metadata: Mapping[str, Any]) -> None:
    """NotFound with `field` for the first relation or source whose message is not there."""
    for field, message_id in _targets(metadata):
        if not queries.is_live(connection, message_id):
            raise NotFound("there is no message of this id", field=field, message_id=message_id)


def _targets(metadata: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for position, relation in enumerate(metadata.get("relations", ())):
        yield f"metadata.relations.{position}.message_id", relation.message_id
    for position, message_id in enumerate(metadata.get("source_message_ids", ())):
        yield f"metadata.source_message_ids.{position}", message_id


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


DECIDERS: Mapping[type[Any], Decider] = {
    WriteMessage: write_message,
    UpdateMessage: update_message,
    DeleteMessage: delete_message,
    CaptureEvent: capture_event,
    **imports.DECIDERS,
}
