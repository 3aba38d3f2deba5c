"""The view `export` of read_messages: the lines of an export file (lines.py), handed out in pages."""

from typing import Any

import apsw
import msgspec

from convmem import cursors
from convmem.domain import Kept
from convmem.messages import kept, lines, replies
from convmem.messages.events import MessageKept
from convmem.messages.inputs import ReadMessages


def oversize_line(record: Kept) -> str:
    """What stands for a message whose line is larger than the reply may be."""
    assert isinstance(record.event, MessageKept)
    return msgspec.json.encode({"type": "oversize", "message_id": record.event.message_id}).decode()


def export(connection: apsw.Connection, ask: ReadMessages) -> dict[str, Any]:
    """Message lines in order of creating sequence: {lines[], next_cursor}.

    A record that does not fit even alone comes as {"type": "oversize", "message_id"}; a larger max_bytes shows it, up
    to the ceiling of a reply.
    """
    question = ("export", ask.project)
    after = 0 if ask.cursor is None else cursors.position(ask.cursor, question, int)
    found = kept.page(connection, after=after, project=ask.project, limit=ask.entries_max + 1)
    budget = replies.Budget(ask.reply_bytes_max)
    shown: list[str] = []
    for record in found:
        text = lines.encode(record).decode()
        if not replies.Budget(ask.reply_bytes_max).take(text):
            text = oversize_line(record)
        if len(shown) == ask.entries_max or not (budget.take(text) or not shown):
            return {"lines": shown, "next_cursor": cursors.cursor(question, after)}
        shown.append(text)
        after = record.sequence
    return {"lines": shown, "next_cursor": None}
