"""Messages as JSONL: one line a record, and the view `export` that hands such lines out in pages.

A line is JSON in which every control character and every line separator of other formats is escaped, so it is one
record for any reader, however that one splits lines. It holds what the message is (origin, revision and times with
it), not where it stands: no sequence. Relations and sources whose target is gone are left out: a file that is read in
elsewhere must be whole in itself.
"""

import re
from typing import Any

import apsw
import msgspec

from convmem.messages import queries, replies
from convmem.messages.inputs import ReadMessages
from convmem.messages.model import Message

# JSON escapes what is below U+0020; these are control characters and separators all the same.
UNSAFE = re.compile("[\x7f-\x9f\u2028\u2029]")


def line(connection: apsw.Connection, message: Message) -> str:
    """One message as a line of JSONL, without its line break."""
    metadata = msgspec.structs.replace(
        message.metadata,
        relations=tuple(
            relation for relation in message.metadata.relations if queries.is_live(connection, relation.message_id)
        ),
        source_message_ids=tuple(
            target for target in message.metadata.source_message_ids if queries.is_live(connection, target)
        ),
    )
    facts = msgspec.structs.replace(message, metadata=metadata).facts()
    del facts["sequence"]
    return _encoded({"type": "message", **facts})


def oversize_line(message: Message) -> str:
    """What stands for a message whose line is larger than the reply may be."""
    return _encoded({"type": "oversize", "message_id": message.message_id})


def _encoded(record: dict[str, Any]) -> str:
    return UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", msgspec.json.encode(record).decode())


def export(connection: apsw.Connection, ask: ReadMessages) -> dict[str, Any]:
    """Message lines in order of creating sequence: {lines[], next_cursor}.

    A record that does not fit even alone comes as {"type": "oversize", "message_id"}; a larger max_bytes shows it, up
    to the ceiling of a reply.
    """
    question = ("export", ask.project)
    after = 0 if ask.cursor is None else replies.position(ask.cursor, question, int)
    found = queries.read_messages(
        connection,
        "WHERE sequence > ?1 AND (?2 IS NULL OR project = ?2) ORDER BY sequence LIMIT ?3",
        (after, ask.project, ask.entries_max + 1),
    )
    budget = replies.Budget(ask.reply_bytes_max)
    lines: list[str] = []
    for message in found:
        text = line(connection, message)
        if not replies.Budget(ask.reply_bytes_max).take(text):
            text = oversize_line(message)
        if len(lines) == ask.entries_max or not (budget.take(text) or not lines):
            return {"lines": lines, "next_cursor": replies.cursor(question, after)}
        lines.append(text)
        after = message.sequence
    return {"lines": lines, "next_cursor": None}
