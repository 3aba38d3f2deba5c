"""Live messages as state events: what compaction, exports and the state hash are made of.

Relations and sources whose target is gone are left out: what is made of this must be whole in itself. Revision and
times stay as they were; nobody changed the message.
"""

from collections.abc import Callable, Iterator, Sequence
from heapq import merge
from sys import intern
from typing import Any

import apsw

from convmem.domain import Kept, Origin, Waste
from convmem.messages import queries
from convmem.messages.events import FingerprintKept, MessageKept, Receipt, ReceiptKept, SourceForgotten
from convmem.messages.fingerprints import mark
from convmem.messages.model import Relation, split_tags

# A field is left out as a default only if it is the very same text, not an equal one.
_same: Callable[[str], Any] = intern


def live(connection: apsw.Connection) -> Iterator[Kept]:
    """Every live message, and all that messages left, by rising sequence; a message before what it left."""
    others = merge(
        _receipts(connection), _fingerprints(connection), _forgotten(connection), key=lambda kept: kept.sequence
    )
    other = next(others, None)
    for kept in messages(connection):
        # A merge by hand: nearly no message has a receipt, and the general one costs each of them a call.
        while other is not None and other.sequence < kept.sequence:
            yield other
            other = next(others, None)
        yield kept
    if other is not None:
        yield other
        yield from others


def messages(connection: apsw.Connection) -> Iterator[Kept]:
    """Every live message, by rising sequence."""
    return _kept(connection, "ORDER BY sequence", ())


def stored(connection: apsw.Connection, message_id: str) -> Kept | None:
    """One live message, or None."""
    return next(_kept(connection, "WHERE message_id = ?", (message_id,)), None)


def page(connection: apsw.Connection, *, after: int, project: str | None, limit: int) -> Iterator[Kept]:
    """Up to `limit` live messages behind a sequence, of one project or of all."""
    where = "WHERE sequence > ?1 AND (?2 IS NULL OR project = ?2) ORDER BY sequence LIMIT ?3"
    return _kept(connection, where, (after, project, limit))


def _kept(connection: apsw.Connection, rest: str, bindings: Sequence[Any]) -> Iterator[Kept]:
    """Straight from the rows: this runs over a million of them."""
    rows: Any = connection.execute(f"SELECT {queries.COLUMNS} FROM messages_message {rest}", bindings)
    # fmt: off
    for (sequence, message_id, session_id, role, timestamp, updated_at, revision, changed_sequence, tier, kind,
         importance, project, tool_call_id, summary, tags, links, device, transport, client, number, capture, imported,
         _, content) in rows:
        # fmt: on
        event = MessageKept(
            message_id=message_id,
            session_id=session_id,
            role=role,
            content=content,
            revision=revision,
            updated_at=None if updated_at == timestamp else updated_at,
            changed_sequence=None if changed_sequence == sequence else changed_sequence,
            tool_call_id=tool_call_id,
            tags=split_tags(tags) if tags else (),
            memory_tier=_same(tier),
            memory_kind=_same(kind),
            importance=importance,
            summary=summary,
            relations=_live_relations(connection, sequence) if links else (),
            source_message_ids=_live_sources(connection, sequence) if links else (),
            project=project,
            capture=None if capture is None else queries.read_capture(capture),
            number=number,
            imported=None if imported is None else queries.read_imported(imported),
        )
        yield Kept(sequence, timestamp, Origin(device, transport, client), event)


def _live_relations(connection: apsw.Connection, sequence: int) -> tuple[Relation, ...]:
    found = queries.relations(connection, sequence)
    return tuple(relation for relation in found if queries.is_live(connection, relation.message_id))


def _live_sources(connection: apsw.Connection, sequence: int) -> tuple[str, ...]:
    return tuple(target for target in queries.sources(connection, sequence) if queries.is_live(connection, target))


def _receipts(connection: apsw.Connection) -> Iterator[Kept]:
    rows: Any = connection.execute(
        "SELECT sequence, timestamp, device, key, arguments, message_id, session_id, sha256 FROM messages_receipt"
        " ORDER BY sequence, device, key"
    )
    for sequence, timestamp, device, key, arguments, message_id, session_id, sha256 in rows:
        event = ReceiptKept(
            device=device,
            receipt=Receipt(key, arguments),
            message_id=message_id,
            session_id=session_id,
            timestamp=timestamp,
            sha256=sha256,
        )
        yield Kept(sequence, timestamp, Origin(device, ""), event)


def _fingerprints(connection: apsw.Connection) -> Iterator[Kept]:
    rows: Any = connection.execute(
        "SELECT sequence, received_at, session, event, text, timestamp FROM messages_fingerprint ORDER BY sequence"
    )
    for sequence, received_at, session, event, text, timestamp in rows:
        kept = FingerprintKept(session=session, event=event, text=text, timestamp=timestamp)
        yield Kept(sequence, received_at, Origin("", ""), kept)


def _forgotten(connection: apsw.Connection) -> Iterator[Kept]:
    rows: Any = connection.execute("SELECT sequence, forgotten_at, source FROM messages_forgotten ORDER BY sequence")
    for sequence, forgotten_at, source in rows:
        yield Kept(sequence, forgotten_at, Origin("", ""), SourceForgotten(source=source))


def left(connection: apsw.Connection, record: Kept) -> FingerprintKept | None:
    """The fingerprint of a captured message that a file brings; None if its event is known. A file holds none itself:
    what it says of the event is enough to make it anew.
    """
    event = record.event
    assert isinstance(event, MessageKept)
    if event.capture is None:
        return None
    made = mark(event.session_id, event.capture.event_id, event.capture.kind, event.content)
    if queries.is_known(connection, made):
        return None
    return FingerprintKept(session=made.session, event=made.event, text=made.text, timestamp=record.at_ms)


def waste(connection: apsw.Connection) -> Waste:
    """What this generation of the log holds in vain."""
    rows: Any = connection.execute("SELECT name, count FROM messages_total").fetchall()
    counts = dict(rows)
    dangling: Any = connection.execute(
        "SELECT (SELECT count(*) FROM messages_relation WHERE target_id NOT IN (SELECT message_id FROM"
        " messages_message)) + (SELECT count(*) FROM messages_source WHERE target_id NOT IN (SELECT message_id FROM"
        " messages_message))"
    ).fetchone()
    return Waste(deleted=counts.get("deleted", 0), superseded=counts.get("superseded", 0), dangling=int(dangling[0]))
