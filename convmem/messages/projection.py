"""How the events of messages show in the index: the same events make the same rows, whenever and wherever.

    messages_message    the live messages; `sequence`, the creating entry's, is the key and the order of everything
    messages_tag        which live messages bear a tag
    messages_relation   what a live message points at; rows outlive their target, so a reader can say it is missing
    messages_source     likewise, for what a message was made from
    messages_group      per session, project and kind: how many live messages, earliest and latest timestamp; what
                        the list of sessions reads instead of all messages
    messages_receipt    what idempotency keys left behind; outlives its message
    messages_total      how many messages were ever deleted

`links` says how many rows of relation and source a message has: nearly all have none and need no second look. `tags`
are joined with U+0000, which no tag holds. `content` stands behind all that is short: SQLite then reads its pages only
when asked for it.

What the search compares is kept folded (text.py), because folding a hundred thousand texts takes seconds and SQLite
itself folds ASCII only: `folded_content` where it is not simply lower(content), `folded_labels` of summary and tags if
there are any. The version of Unicode stands in the table's own text: with another one the index is made anew.

Times of groups are recomputed from an index when a message goes: no event knows what was second.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import apsw
from msgspec import UNSET

from convmem.domain import Event, Place
from convmem.limits import RECEIPTS_KEPT_MS
from convmem.messages.events import MessageDeleted, MessageUpdated, MessageWritten, Receipt
from convmem.messages.model import TAG_SEPARATOR, Relation, split_tags
from convmem.text import UNICODE_VERSION, fold

CREATE = f"""
CREATE TABLE messages_message ( -- folded by Unicode {UNICODE_VERSION}
    sequence INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL UNIQUE,
    session_id TEXT NOT NULL,
    role TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    changed_sequence INTEGER NOT NULL,
    memory_tier TEXT NOT NULL,
    memory_kind TEXT NOT NULL,
    importance INTEGER NOT NULL,
    project TEXT,
    tool_call_id TEXT,
    summary TEXT,
    tags TEXT NOT NULL,
    links INTEGER NOT NULL,
    device TEXT NOT NULL,
    transport TEXT NOT NULL,
    client TEXT,
    content_bytes INTEGER NOT NULL,
    folded_labels TEXT,
    content TEXT NOT NULL,
    folded_content TEXT
) STRICT;
CREATE INDEX messages_by_session ON messages_message (session_id, sequence, role, project);
CREATE INDEX messages_by_group ON messages_message (session_id, memory_kind, project, timestamp);
CREATE INDEX messages_summarised ON messages_message (session_id, sequence) WHERE summary IS NOT NULL;
CREATE TABLE messages_tag (
    tag TEXT NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (tag, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE messages_relation (
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    PRIMARY KEY (sequence, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_relation_by_target ON messages_relation (target_id, sequence);
CREATE TABLE messages_source (
    sequence INTEGER NOT NULL,
    position INTEGER NOT NULL,
    target_id TEXT NOT NULL,
    PRIMARY KEY (sequence, position)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_source_by_target ON messages_source (target_id, sequence);
CREATE TABLE messages_group (
    session_id TEXT NOT NULL,
    project TEXT,
    memory_kind TEXT NOT NULL,
    count INTEGER NOT NULL,
    first_at INTEGER NOT NULL,
    last_at INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_group_by_session ON messages_group (session_id, memory_kind, project);
CREATE INDEX messages_group_by_time ON messages_group (last_at DESC, session_id, project);
CREATE TABLE messages_receipt (
    device TEXT NOT NULL,
    key BLOB NOT NULL,
    arguments BLOB NOT NULL,
    message_id TEXT NOT NULL,
    session_id TEXT NOT NULL,
    timestamp INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    PRIMARY KEY (device, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_receipt_by_time ON messages_receipt (timestamp);
CREATE TABLE messages_total (
    name TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""

# Fields of MessageUpdated that are columns of the same name and take their value as it is.
PLAIN_COLUMNS = ("content", "tool_call_id", "memory_tier", "memory_kind", "importance", "summary", "project")

Group = tuple[str, str | None, str]  # session_id, project, memory_kind


def message_written(connection: apsw.Connection, event: MessageWritten, place: Place) -> None:
    """Show a new message; its timestamp is its entry's time."""
    encoded = event.content.encode()
    connection.execute(
        "INSERT INTO messages_message VALUES (?, ?, ?, ?, ?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            place.sequence,
            event.message_id,
            event.session_id,
            event.role,
            place.at_ms,
            place.at_ms,
            place.sequence,
            event.memory_tier,
            event.memory_kind,
            event.importance,
            event.project,
            event.tool_call_id,
            event.summary,
            TAG_SEPARATOR.join(event.tags),
            len(event.relations) + len(event.source_message_ids),
            *(place.origin.device, place.origin.transport, place.origin.client),
            len(encoded),
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
    if event.receipt is not None:
        _keep_receipt(connection, event, event.receipt, place, hashlib.sha256(encoded).digest())


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
        " links",
        (event.message_id,),
    ).fetchone()
    assert found is not None, "only a live message was deleted"
    sequence, session_id, project, kind, tags, links = found
    if tags:
        _delete_tags(connection, sequence, tags)
    if links:
        connection.execute("DELETE FROM messages_relation WHERE sequence = ?", (sequence,))
        connection.execute("DELETE FROM messages_source WHERE sequence = ?", (sequence,))
    _leave_group(connection, (session_id, project, kind))
    connection.execute(
        "INSERT INTO messages_total VALUES ('deleted', 1) ON CONFLICT (name) DO UPDATE SET count = count + 1"
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


def _keep_receipt(
    connection: apsw.Connection, event: MessageWritten, receipt: Receipt, place: Place, sha256: bytes
) -> None:
    """Keep what a repeated call is answered with, and let go of those kept long enough, by the entry's own time."""
    connection.execute("DELETE FROM messages_receipt WHERE timestamp < ?", (place.at_ms - RECEIPTS_KEPT_MS,))
    connection.execute(
        "INSERT INTO messages_receipt VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (
            *(place.origin.device, receipt.key, receipt.arguments, event.message_id, event.session_id),
            *(place.at_ms, place.sequence, sha256),
        ),
    )


APPLIERS: Mapping[type[Event], Callable[[apsw.Connection, Any, Place], None]] = {
    MessageWritten: message_written,
    MessageUpdated: message_updated,
    MessageDeleted: message_deleted,
}
