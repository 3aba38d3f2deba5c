"""The view `sessions`: what conversations there are, newest first.

It reads groups (projection.py), not messages: a page costs what it shows. A session stands where its newest group
stands; with `project`, only that project's messages count, in the place as well as in the numbers.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import apsw

from convmem import cursors
from convmem.limits import SESSION_SUMMARY_CODE_POINTS_MAX
from convmem.messages import replies
from convmem.messages.inputs import ReadMessages

# The newest group of each session, walked in the order of the index: a later group, or one further on among equals,
# speaks for the session instead.
NEWEST_GROUPS = """
SELECT session_id, last_at FROM messages_group AS g
WHERE (?1 IS NULL OR project = ?1) AND last_at <= ?2 AND (last_at < ?2 OR session_id > ?3)
AND NOT EXISTS (
    SELECT 1 FROM messages_group AS other
    WHERE other.session_id = g.session_id AND (?1 IS NULL OR other.project = ?1)
    AND (other.last_at, other.rowid) > (g.last_at, g.rowid)
)
ORDER BY last_at DESC, session_id LIMIT ?4
"""
LATEST = 2**63 - 1
# Where a session's summary is looked for, in this order: what to show, of which message, and why that one.
SUMMARIES = (
    (
        "content",
        "content",
        "sequence = (SELECT max(+sequence) FROM messages_message WHERE session_id = ?1 AND memory_kind = 'summary'"
        " AND (?2 IS NULL OR project = ?2))",
    ),
    (
        "metadata.summary",
        "summary",
        "session_id = ?1 AND summary IS NOT NULL AND (?2 IS NULL OR project = ?2) ORDER BY sequence DESC LIMIT 1",
    ),
    (
        "content",
        "content",
        "sequence = (SELECT sequence FROM messages_message WHERE session_id = ?1 AND role = 'user'"
        " AND (?2 IS NULL OR project = ?2) ORDER BY sequence LIMIT 1)",
    ),
)


def sessions(connection: apsw.Connection, ask: ReadMessages) -> dict[str, Any]:
    """The conversations: {sessions[{session_id, count, count_by_kind, first_at, last_at, summary?}], next_cursor}."""
    question = ("sessions", ask.project)
    last_at, after = LATEST, ""
    if ask.cursor is not None:
        last_at, after = cursors.position(ask.cursor, question, tuple[int, str])
    budget = replies.Budget(ask.reply_bytes_max)
    shown: list[dict[str, Any]] = []
    rows = connection.execute(NEWEST_GROUPS, (ask.project, last_at, after, ask.entries_max + 1))
    for session_id, newest_at in rows:
        facts = _facts(connection, session_id, ask.project)
        if len(shown) == ask.entries_max or not (budget.take(facts) or not shown):
            return {"sessions": shown, "next_cursor": cursors.cursor(question, (last_at, after))}
        shown.append(facts)
        last_at, after = newest_at, session_id
    return {"sessions": shown, "next_cursor": None}


def _facts(connection: apsw.Connection, session_id: str, project: str | None) -> dict[str, Any]:
    groups: Sequence[Any] = connection.execute(
        "SELECT memory_kind, sum(count), min(first_at), max(last_at) FROM messages_group"
        " WHERE session_id = ? AND (?2 IS NULL OR project = ?2) GROUP BY memory_kind",
        (session_id, project),
    ).fetchall()
    return {
        "session_id": session_id,
        "count": sum(count for _, count, _, _ in groups),
        "count_by_kind": {kind: count for kind, count, _, _ in groups},
        "first_at": min(first_at for _, _, first_at, _ in groups),
        "last_at": max(last_at for _, _, _, last_at in groups),
        **dict(_summary(connection, session_id, project)),
    }


def _summary(connection: apsw.Connection, session_id: str, project: str | None) -> Iterator[tuple[str, Any]]:
    """What stands for the session: its text under `summary`, cut under `summary_preview`, and where it is from."""
    for field, column, which in SUMMARIES:
        found: Sequence[Any] | None = connection.execute(
            f"SELECT message_id, {column} FROM messages_message WHERE {which}", (session_id, project)
        ).fetchone()
        if found is not None:
            message_id, text = found
            is_whole = len(text) <= SESSION_SUMMARY_CODE_POINTS_MAX
            yield "summary" if is_whole else "summary_preview", text[:SESSION_SUMMARY_CODE_POINTS_MAX]
            yield "summary_of", {"message_id": message_id, "field": field}
            return
