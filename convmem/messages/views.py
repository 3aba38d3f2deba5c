"""The views of read_messages that show messages: a session's history, a slice of one text, one message in context.

Each is a query: connection and input in, facts out. A page holds whole records while they fit, at least one, and says
where the next one begins.
"""

from collections.abc import Callable, Iterable
from typing import Any

import apsw

from convmem import cursors
from convmem.errors import Conflict, InvalidOffset, NotFound
from convmem.limits import LIST_ENTRIES_MAX, RELATION_PREVIEW_CODE_POINTS
from convmem.messages import queries, replies
from convmem.messages.inputs import ReadMessages
from convmem.messages.model import Message
from convmem.text import is_code_point_start

CODE_POINT_BYTES_MAX = 4


def history(connection: apsw.Connection, ask: ReadMessages) -> dict[str, Any]:
    """The messages of a session: {messages[], next_cursor}."""
    question = ("history", ask.session_id, ask.project, ask.order)
    beyond, order = (">", "ASC") if ask.order == "asc" else ("<", "DESC")
    where = "WHERE session_id = ?"
    bindings: list[Any] = [ask.session_id]
    if ask.project is not None:
        where, bindings = f"{where} AND project = ?", [*bindings, ask.project]
    if ask.cursor is not None:
        where = f"{where} AND sequence {beyond} ?"
        bindings = [*bindings, cursors.position(ask.cursor, question, int)]
    found = queries.read_messages(
        connection, f"{where} ORDER BY sequence {order} LIMIT ?", (*bindings, ask.entries_max + 1)
    )
    budget = replies.Budget(ask.reply_bytes_max)
    messages: list[dict[str, Any]] = []
    last = 0
    for message in found:
        shown = budget.fit(message, is_first=not messages) if len(messages) < ask.entries_max else None
        if shown is None:
            return {"messages": messages, "next_cursor": cursors.cursor(question, last)}
        messages.append(shown)
        last = message.sequence
    return {"messages": messages, "next_cursor": None}


def content(connection: apsw.Connection, ask: ReadMessages) -> dict[str, Any]:
    """A slice of one text: {message_id, revision, offset, next_offset, total_bytes, content, eof}, all in bytes.

    InvalidOffset for an offset inside a code point or behind the end; Conflict if the revision is another than
    expected. A slice ends before a code point that does not fit, but holds at least one.
    """
    found: Any = connection.execute(
        "SELECT revision, content_bytes, substr(CAST(content AS BLOB), ? + 1, ?) FROM messages_message"
        " WHERE message_id = ?",
        (ask.offset, ask.entries_max + CODE_POINT_BYTES_MAX, ask.message_id),
    ).fetchone()
    if found is None:
        raise _not_there(ask.message_id)
    revision, total_bytes, data = found
    # SQLite says NULL for a part of nothing.
    data = data or b""
    if ask.expected_revision not in (None, revision):
        raise Conflict("the message changed since it was read", current_revision=revision)
    if ask.offset > total_bytes or (data and not is_code_point_start(data[0])):
        raise InvalidOffset(
            "offset must be 0, the end, or where a code point begins", offset=ask.offset, total_bytes=total_bytes
        )
    slice_bytes = ask.entries_max
    while True:
        text = _slice(data, slice_bytes)
        end = ask.offset + len(text.encode())
        facts = {
            "message_id": ask.message_id,
            "revision": revision,
            "offset": ask.offset,
            "next_offset": end,
            "total_bytes": total_bytes,
            "content": text,
            "eof": end == total_bytes,
        }
        if slice_bytes == 1 or replies.Budget(ask.reply_bytes_max).take(facts):
            return facts
        slice_bytes //= 2


def _slice(data: bytes, bytes_max: int) -> str:
    """The start of `data` of at most `bytes_max` bytes that splits no code point; at least one code point."""
    end = min(bytes_max, len(data))
    while end and end < len(data) and not is_code_point_start(data[end]):
        end -= 1
    if end == 0:
        end = min(1, len(data))
        while end < len(data) and not is_code_point_start(data[end]):
            end += 1
    return data[:end].decode()


def context(connection: apsw.Connection, ask: ReadMessages) -> dict[str, Any]:
    """One message: {target, before[], after[], relations {outgoing[], incoming[], missing[]}, truncated}.

    Neighbours stand in the session's order. What does not fit is left out, the farthest first, and `truncated` says so.
    """
    assert ask.message_id is not None
    target = queries.read_message(connection, ask.message_id)
    if target is None:
        raise _not_there(ask.message_id)
    budget = replies.Budget(ask.reply_bytes_max)
    shown = budget.fit(target, is_first=True)
    before, after = queries.neighbours(connection, target, before=ask.before, after=ask.after)
    near_before, near_after = _fitting(budget, before), _fitting(budget, after)
    walks = {
        "outgoing": _walk(connection, ask, queries.outgoing),
        "incoming": _walk(connection, ask, queries.incoming),
    }
    truncated = len(near_before) < len(before) or len(near_after) < len(after)
    relations: dict[str, list[dict[str, Any]]] = {"outgoing": [], "incoming": [], "missing": []}
    for direction, edges in walks.items():
        truncated |= len(edges) > LIST_ENTRIES_MAX
        for depth, edge in edges[:LIST_ENTRIES_MAX]:
            related = queries.read_message(connection, edge.to_id if direction == "outgoing" else edge.from_id)
            facts = _edge_facts(depth, edge, related)
            if not budget.take(facts):
                truncated = True
                break
            relations["missing" if related is None else direction].append(facts)
    return {
        "target": shown,
        "before": near_before[::-1],
        "after": near_after,
        "relations": relations,
        "truncated": truncated,
    }


def _fitting(budget: replies.Budget, messages: Iterable[Message]) -> list[dict[str, Any]]:
    """The messages, nearest first, until one does not fit."""
    fitting: list[dict[str, Any]] = []
    for message in messages:
        facts = budget.fit(message, is_first=False)
        if facts is None:
            break
        fitting.append(facts)
    return fitting


def _walk(
    connection: apsw.Connection,
    ask: ReadMessages,
    step: Callable[[apsw.Connection, str, int], list[queries.Edge]],
) -> list[tuple[int, queries.Edge]]:
    """The relations along one direction with their depth, breadth first, no message left twice; one more than shown."""
    assert ask.message_id is not None
    edges: list[tuple[int, queries.Edge]] = []
    seen, ring = {ask.message_id}, [ask.message_id]
    for depth in range(1, ask.relation_depth + 1):
        following: list[str] = []
        for message_id in ring:
            for edge in step(connection, message_id, LIST_ENTRIES_MAX + 1 - len(edges)):
                edges.append((depth, edge))
                other = edge.to_id if edge.from_id == message_id else edge.from_id
                if other not in seen:
                    seen.add(other)
                    following.append(other)
        ring = following
    return edges


def _edge_facts(depth: int, edge: queries.Edge, related: Message | None) -> dict[str, Any]:
    facts: dict[str, Any] = {"type": edge.type, "depth": depth, "from": edge.from_id, "to": edge.to_id}
    if related is None:
        return {"message_id": edge.to_id, **facts}
    facts = {
        "message_id": related.message_id,
        **facts,
        "session_id": related.session_id,
        "timestamp": related.timestamp,
        "role": related.role,
    }
    return facts | replies.brief(related, RELATION_PREVIEW_CODE_POINTS)


def _not_there(message_id: str | None) -> NotFound:
    return NotFound("there is no message of this id", field="message_id", message_id=message_id)
