"""How the events of messages show in the index (create.py): the same events make the same rows, whenever and wherever.

An applier knows the event and its place in the log, nothing else: no clock, no question that the log does not answer.
Times of groups are looked up anew when a message goes: no event knows what was second.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw
import msgspec
from msgspec import UNSET

from convmem.domain import Event, Place
from convmem.limits import CAPTURE_KNOWN_MS, RECEIPTS_KEPT_MS
from convmem.messages import left_behind
from convmem.messages.events import MessageDeleted, MessageKept, MessageUpdated, MessageWritten
from convmem.messages.fingerprints import mark
from convmem.messages.model import TAG_SEPARATOR, Capture, Imported, Relation, split_tags
from convmem.text import fold

# Fields of MessageUpdated that are columns of the same name and take their value as it is.
PLAIN_COLUMNS = ("content", "tool_call_id", "memory_tier", "memory_kind", "importance", "summary", "project")

Group = tuple[str, str | None, str]  # session_id, project, memory_kind


def message_written(connection: apsw.Connection, event: MessageWritten, place: Place) -> None:
    """Show a new message; its timestamp is its entry's time, unless it says another."""
    at_ms = place.at_ms if event.timestamp is None else event.timestamp
    said = place._replace(at_ms=at_ms)
    _insert(connection, event, said, revision=1, updated_at=at_ms, changed_sequence=place.sequence)
    if event.capture is not None:
        left = mark(event.session_id, event.capture.event_id, event.capture.kind, event.content)
        left_behind.fingerprint(connection, left, at_ms, place)
        long_ago = (place.at_ms - CAPTURE_KNOWN_MS,)
        over = connection.execute("DELETE FROM messages_captured_session WHERE last_at < ? RETURNING session", long_ago)
        connection.executemany("DELETE FROM messages_fingerprint WHERE session = ?", over.fetchall())
    if event.receipt is not None:
        connection.execute("DELETE FROM messages_receipt WHERE timestamp < ?", (place.at_ms - RECEIPTS_KEPT_MS,))
        where = (place.origin.device, event.message_id, event.session_id, place.at_ms, place.sequence)
        left_behind.receipt(connection, event.receipt, *where, hashlib.sha256(event.content.encode()).digest())


def message_kept(connection: apsw.Connection, event: MessageKept, place: Place) -> None:
    """Show a message as it stood; its timestamp is its entry's time."""
    _insert(
        connection,
        event,
        place,
        revision=event.revision,
        updated_at=place.at_ms if event.updated_at is None else event.updated_at,
        changed_sequence=place.sequence if event.changed_sequence is None else event.changed_sequence,
    )


def _insert(
    connection: apsw.Connection,
    event: MessageWritten | MessageKept,
    place: Place,
    *,
    revision: int,
    updated_at: int,
    changed_sequence: int,
) -> None:
    connection.execute(
        f"INSERT INTO messages_message VALUES (?{', ?' * 27})",
        (
            place.sequence,
            event.message_id,
            event.session_id,
            event.role,
            place.at_ms,
            updated_at,
            revision,
            changed_sequence,
            event.memory_tier,
            event.memory_kind,
            event.importance,
            event.project,
            event.tool_call_id,
            event.summary,
            TAG_SEPARATOR.join(event.tags),
            len(event.relations) + len(event.source_message_ids),
            event.number,
            *_capture_columns(event.capture),
            *_imported_columns(event.imported),
            *(place.origin.device, place.origin.transport, place.origin.client),
            len(event.content.encode()),
            _folded_labels(event.summary, event.tags),
            event.content,
            _folded_content(event.content),
        ),
    )
    if event.tags:
        _insert_tags(connection, place.sequence, event.tags)
    if event.relations:
        _insert_relations(connection, place.sequence, event.relations)
    if event.source_message_ids:
        _insert_sources(connection, place.sequence, event.source_message_ids)
    _join_group(connection, (event.session_id, event.project, event.memory_kind), place.at_ms)


def message_updated(connection: apsw.Connection, event: MessageUpdated, place: Place) -> None:
    """Show what changed, and only that. `updated_at` never falls, whatever the clock does."""
    found = connection.execute(
        "SELECT sequence, session_id, project, memory_kind, timestamp, summary, tags FROM messages_message"
        " WHERE message_id = ?",
        (event.message_id,),
    ).fetchone()
    assert found is not None, "only a live message was updated"
    sequence, session_id, project, kind, timestamp, summary, tags = found
    columns: dict[str, Any] = {name: value for name in PLAIN_COLUMNS if (value := getattr(event, name)) is not UNSET}
    if event.content is not UNSET:
        columns["content_bytes"] = len(event.content.encode())
        columns["folded_content"] = _folded_content(event.content)
    if event.tags is not UNSET or event.summary is not UNSET:
        labels = (columns.get("summary", summary), split_tags(tags) if event.tags is UNSET else event.tags)
        columns["folded_labels"] = _folded_labels(*labels)
    if event.imported is not UNSET:
        columns["source"], columns["imported"] = _imported_columns(event.imported)
    if event.tags is not UNSET:
        columns["tags"] = TAG_SEPARATOR.join(event.tags)
        _delete_tags(connection, sequence, tags)
        _insert_tags(connection, sequence, event.tags)
    if event.relations is not UNSET:
        connection.execute("DELETE FROM messages_relation WHERE sequence = ?", (sequence,))
        _insert_relations(connection, sequence, event.relations)
    if event.source_message_ids is not UNSET:
        connection.execute("DELETE FROM messages_source WHERE sequence = ?", (sequence,))
        _insert_sources(connection, sequence, event.source_message_ids)
    if event.relations is not UNSET or event.source_message_ids is not UNSET:
        columns["links"] = _count_links(connection, sequence)
    sets = "".join(f", {name} = ?" for name in columns)
    _count(connection, "superseded")
    connection.execute(
        f"UPDATE messages_message SET revision = ?, changed_sequence = ?, updated_at = max(updated_at, ?){sets}"
        " WHERE sequence = ?",
        (event.revision, place.sequence, place.at_ms, *columns.values(), sequence),
    )
    after = (session_id, columns.get("project", project), columns.get("memory_kind", kind))
    if after != (session_id, project, kind):
        _leave_group(connection, (session_id, project, kind))
        _join_group(connection, after, timestamp)


def message_deleted(connection: apsw.Connection, event: MessageDeleted, place: Place) -> None:
    """Take a message away with everything that it says; what others say about it stays and points nowhere."""
    found = connection.execute(
        "DELETE FROM messages_message WHERE message_id = ? RETURNING sequence, session_id, project, memory_kind, tags,"
        " links, source",
        (event.message_id,),
    ).fetchone()
    assert found is not None, "only a live message was deleted"
    sequence, session_id, project, kind, tags, links, source = found
    if source is not None:
        left_behind.forget(connection, source, place)
    if tags:
        _delete_tags(connection, sequence, tags)
    if links:
        connection.execute("DELETE FROM messages_relation WHERE sequence = ?", (sequence,))
        connection.execute("DELETE FROM messages_source WHERE sequence = ?", (sequence,))
    _leave_group(connection, (session_id, project, kind))
    _count(connection, "deleted")
    connection.execute("INSERT INTO messages_gone VALUES (?, ?)", (place.sequence, sequence))


def _count(connection: apsw.Connection, name: str) -> None:
    connection.execute(
        "INSERT INTO messages_total VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1", (name,)
    )


def _folded_content(content: str) -> str | None:
    """What the search compares, or None where SQLite's lower(content) is the same."""
    if content.isascii() or (folded := fold(content)) == content:
        return None
    return folded


def _folded_labels(summary: str | None, tags: Sequence[str]) -> str | None:
    labels = [label for label in (summary, *tags) if label]
    return TAG_SEPARATOR.join(map(fold, labels)) or None


def _insert_tags(connection: apsw.Connection, sequence: int, tags: Sequence[str]) -> None:
    connection.executemany("INSERT INTO messages_tag VALUES (?, ?)", [(tag, sequence) for tag in tags])


def _delete_tags(connection: apsw.Connection, sequence: int, joined: str) -> None:
    connection.executemany(
        "DELETE FROM messages_tag WHERE tag = ? AND sequence = ?", [(tag, sequence) for tag in split_tags(joined)]
    )


def _insert_relations(connection: apsw.Connection, sequence: int, relations: Sequence[Relation]) -> None:
    connection.executemany(
        "INSERT INTO messages_relation VALUES (?, ?, ?, ?)",
        [(sequence, position, relation.type, relation.message_id) for position, relation in enumerate(relations)],
    )


def _insert_sources(connection: apsw.Connection, sequence: int, targets: Sequence[str]) -> None:
    connection.executemany(
        "INSERT INTO messages_source VALUES (?, ?, ?)",
        [(sequence, position, target) for position, target in enumerate(targets)],
    )


def _count_links(connection: apsw.Connection, sequence: int) -> int:
    found: Any = connection.execute(
        "SELECT (SELECT count(*) FROM messages_relation WHERE sequence = ?1)"
        " + (SELECT count(*) FROM messages_source WHERE sequence = ?1)",
        (sequence,),
    ).fetchone()
    return int(found[0])


def _capture_columns(capture: Capture | None) -> tuple[str | None, str | None]:
    return (None, None) if capture is None else (capture.kind, msgspec.json.encode(capture).decode())


def _imported_columns(imported: Imported | None) -> tuple[bytes | None, str | None]:
    return (
        (None, None) if imported is None else (bytes.fromhex(imported.source), msgspec.json.encode(imported).decode())
    )


def _join_group(connection: apsw.Connection, group: Group, timestamp: int) -> None:
    session_id, project, kind = group
    connection.execute(
        "UPDATE messages_group SET count = count + 1, first_at = min(first_at, ?), last_at = max(last_at, ?)"
        " WHERE session_id = ? AND memory_kind = ? AND project IS ?",
        (timestamp, timestamp, session_id, kind, project),
    )
    if not connection.changes():
        connection.execute(
            "INSERT INTO messages_group VALUES (?, ?, ?, 1, ?, ?)", (session_id, project, kind, timestamp, timestamp)
        )


def _leave_group(connection: apsw.Connection, group: Group) -> None:
    """After the message itself has left: count it out and look up the times of those that stay."""
    session_id, project, kind = group
    which = "session_id = ?1 AND memory_kind = ?2 AND project IS ?3"
    stay = f"SELECT timestamp FROM messages_message WHERE {which} ORDER BY timestamp"
    connection.execute(f"DELETE FROM messages_group WHERE {which} AND count = 1", (session_id, kind, project))
    if not connection.changes():
        connection.execute(
            f"UPDATE messages_group SET count = count - 1, first_at = ({stay} LIMIT 1), last_at = ({stay} DESC LIMIT 1)"
            f" WHERE {which}",
            (session_id, kind, project),
        )


APPLIERS: Mapping[type[Event], Callable[[apsw.Connection, Any, Place], None]] = {
    MessageWritten: message_written,
    MessageUpdated: message_updated,
    MessageDeleted: message_deleted,
    MessageKept: message_kept,
    **left_behind.APPLIERS,
}
