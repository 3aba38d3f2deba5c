"""What the index knows of messages, one question a function: whole messages, who points at whom, receipts, totals.

The views (views.py, sessions.py, transfer.py, search.py) are made of these. Order is by sequence, never by time. Every
query walks an index: what a question costs depends on its answer, not on how much is stored.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import apsw
import msgspec

from convmem.domain import Origin
from convmem.messages.fingerprints import Mark
from convmem.messages.model import CAPTURE_KINDS, Capture, Imported, Message, Metadata, Relation, split_tags

COLUMNS = (
    "sequence, message_id, session_id, role, timestamp, updated_at, revision, changed_sequence, memory_tier,"
    " memory_kind, importance, project, tool_call_id, summary, tags, links, device, transport, client, number,"
    " capture, imported, content_bytes, content"
)

_CAPTURES = msgspec.json.Decoder(Capture)
_IMPORTS = msgspec.json.Decoder(Imported)


def read_messages(connection: apsw.Connection, rest: str, bindings: Sequence[Any]) -> Iterator[Message]:
    """The messages of `SELECT … FROM messages_message` and `rest`, one by one as they are asked for."""
    for row in connection.execute(f"SELECT {COLUMNS} FROM messages_message {rest}", bindings):
        yield _message(connection, row)


def read_message(connection: apsw.Connection, message_id: str) -> Message | None:
    """A live message, or None."""
    return next(read_messages(connection, "WHERE message_id = ?", (message_id,)), None)


def _message(connection: apsw.Connection, row: Sequence[Any]) -> Message:
    sequence, message_id, session_id, role, timestamp, updated_at, revision, changed_sequence = row[:8]
    tier, kind, importance, project, tool_call_id, summary, tags, links = row[8:16]
    device, transport, client, number, capture, imported, content_bytes, content = row[16:]
    metadata = Metadata(
        tool_call_id=tool_call_id,
        tags=split_tags(tags),
        memory_tier=tier,
        memory_kind=kind,
        importance=importance,
        summary=summary,
        relations=relations(connection, sequence) if links else (),
        source_message_ids=sources(connection, sequence) if links else (),
        project=project,
    )
    return Message(
        message_id=message_id,
        session_id=session_id,
        timestamp=timestamp,
        updated_at=updated_at,
        revision=revision,
        sequence=sequence,
        changed_sequence=changed_sequence,
        role=role,
        content=content,
        content_bytes=content_bytes,
        metadata=metadata,
        origin=Origin(device, transport, client),
        capture=None if capture is None else read_capture(capture),
        number=number,
        imported=None if imported is None else read_imported(imported),
    )


def read_capture(facts: str) -> Capture:
    """What is known of a captured message, as the index holds it."""
    return _CAPTURES.decode(facts)


def read_imported(facts: str) -> Imported:
    """Where an imported message is from, as the index holds it."""
    return _IMPORTS.decode(facts)


def relations(connection: apsw.Connection, sequence: int) -> tuple[Relation, ...]:
    """What the message of this sequence points at, in its order; targets may be gone."""
    rows = connection.execute(
        "SELECT type, target_id FROM messages_relation WHERE sequence = ? ORDER BY position", (sequence,)
    )
    return tuple(Relation(type=kind, message_id=target) for kind, target in rows)


def sources(connection: apsw.Connection, sequence: int) -> tuple[str, ...]:
    """What the message of this sequence was made from, in its order; sources may be gone."""
    rows = connection.execute("SELECT target_id FROM messages_source WHERE sequence = ? ORDER BY position", (sequence,))
    return tuple(target for (target,) in rows)


def is_live(connection: apsw.Connection, message_id: str) -> bool:
    """True if a message of this id is there."""
    found = connection.execute("SELECT 1 FROM messages_message WHERE message_id = ?", (message_id,)).fetchone()
    return found is not None


def read_session_id(connection: apsw.Connection, message_id: str) -> str | None:
    """The session of a live message, or None."""
    found = connection.execute("SELECT session_id FROM messages_message WHERE message_id = ?", (message_id,)).fetchone()
    return None if found is None else str(found[0])


def neighbours(
    connection: apsw.Connection, message: Message, *, before: int, after: int
) -> tuple[list[Message], list[Message]]:
    """Up to `before` and `after` live messages around one in its session, each nearest first."""
    earlier = "WHERE session_id = ? AND sequence < ? ORDER BY sequence DESC LIMIT ?"
    later = "WHERE session_id = ? AND sequence > ? ORDER BY sequence LIMIT ?"
    where = (message.session_id, message.sequence)
    return (
        list(read_messages(connection, earlier, (*where, before))) if before else [],
        list(read_messages(connection, later, (*where, after))) if after else [],
    )


class Edge(NamedTuple):
    """One relation: from a live message to one that may be gone."""

    from_id: str
    type: str
    to_id: str


def outgoing(connection: apsw.Connection, message_id: str, edges_max: int) -> list[Edge]:
    """The relations of a live message, in its order."""
    rows = connection.execute(
        "SELECT type, target_id FROM messages_relation WHERE sequence ="
        " (SELECT sequence FROM messages_message WHERE message_id = ?) ORDER BY position LIMIT ?",
        (message_id, edges_max),
    )
    return [Edge(message_id, kind, target) for kind, target in rows]


def incoming(connection: apsw.Connection, message_id: str, edges_max: int) -> list[Edge]:
    """The relations of live messages that point at this one, oldest message first."""
    rows = connection.execute(
        "SELECT message_id, type FROM messages_relation JOIN messages_message USING (sequence)"
        " WHERE target_id = ? ORDER BY sequence, position LIMIT ?",
        (message_id, edges_max),
    )
    return [Edge(source, kind, message_id) for source, kind in rows]


class KnownReceipt(NamedTuple):
    """What an idempotency key was answered with the first time."""

    arguments: bytes
    message_id: str
    session_id: str
    timestamp: int
    sequence: int
    sha256: bytes


def read_receipt(connection: apsw.Connection, device: str, key: bytes) -> KnownReceipt | None:
    """What this device's key left behind, or None."""
    found: Any = connection.execute(
        "SELECT arguments, message_id, session_id, timestamp, sequence, sha256 FROM messages_receipt"
        " WHERE device = ? AND key = ?",
        (device, key),
    ).fetchone()
    return None if found is None else KnownReceipt(*found)


class Totals(NamedTuple):
    """How many there are, and how many deleted ones the log still holds the bytes of."""

    live: int
    deleted: int
    sessions: int


def totals(connection: apsw.Connection) -> Totals:
    """Counted from the groups, not from the messages."""
    live, sessions = connection.execute(
        "SELECT coalesce(sum(count), 0), count(DISTINCT session_id) FROM messages_group"
    ).fetchone() or (0, 0)
    deleted = connection.execute("SELECT count FROM messages_total WHERE name = 'deleted'").fetchone()
    return Totals(live=int(live), deleted=int(deleted[0]) if deleted else 0, sessions=int(sessions))


class Times(NamedTuple):
    """When the oldest and the newest live message were said, ms since the Unix epoch; None where there is none."""

    oldest_at: int | None
    newest_at: int | None


def times(connection: apsw.Connection) -> Times:
    """Read from the groups, not from the messages."""
    found: Any = connection.execute("SELECT min(first_at), max(last_at) FROM messages_group").fetchone()
    return Times(*found)


def captured(connection: apsw.Connection, *, kind: str | None, limit: int) -> Iterator[Message]:
    """The newest messages that hooks captured, of one kind or of all."""
    kinds = CAPTURE_KINDS if kind is None else (kind,)
    # One by one along the index, since a condition on several kinds would sort them all.
    newest = " UNION ALL ".join(
        f"SELECT * FROM (SELECT sequence FROM messages_message WHERE capture_kind = ?{place}"
        f" ORDER BY sequence DESC LIMIT ?{len(kinds) + 1})"
        for place in range(1, len(kinds) + 1)
    )
    where = f"WHERE sequence IN ({newest}) ORDER BY sequence DESC LIMIT ?{len(kinds) + 1}"
    return read_messages(connection, where, (*kinds, limit))


def captured_by_number(connection: apsw.Connection, number: int) -> Message | None:
    """The captured message of this number, or None."""
    return next(read_messages(connection, "WHERE number = ?", (number,)), None)


def capture_totals(connection: apsw.Connection) -> Mapping[str, int]:
    """How many captured messages there are of each kind."""
    rows: Any = connection.execute(
        "SELECT capture_kind, count(*) FROM messages_message WHERE capture_kind IS NOT NULL GROUP BY capture_kind"
    )
    counts = dict[str, int](rows)
    return {kind: counts.get(kind, 0) for kind in CAPTURE_KINDS}


def is_known(connection: apsw.Connection, left: Mark) -> bool:
    """True if this event of a hook came in before."""
    found = connection.execute(
        "SELECT 1 FROM messages_fingerprint WHERE session = ? AND event = ?", (left.session, left.event)
    ).fetchone()
    return found is not None


def has_twin(connection: apsw.Connection, left: Mark, timestamp: int, apart_ms_max: int) -> bool:
    """True if the session has stored an event of this kind and text from nearly the same time."""
    found = connection.execute(
        "SELECT 1 FROM messages_fingerprint WHERE session = ? AND text = ? AND timestamp BETWEEN ? AND ?",
        (left.session, left.text, timestamp - apart_ms_max, timestamp + apart_ms_max),
    ).fetchone()
    return found is not None


def of_source(connection: apsw.Connection, source: bytes) -> Message | None:
    """The live message that was imported from a source, or None."""
    return next(read_messages(connection, "WHERE source = ? ORDER BY sequence LIMIT 1", (source,)), None)


def is_forgotten(connection: apsw.Connection, source: bytes) -> bool:
    """True if a message of this source was deleted."""
    return connection.execute("SELECT 1 FROM messages_forgotten WHERE source = ?", (source,)).fetchone() is not None
