"""The invariants of the tables of messages: walked by `check`, the scrub and the end of every store test.

Each is one query for its violations and one sentence; the sentences name sequences and counts, never text.
"""

import apsw

VIOLATIONS_MAX = 20

# What is wrong, and the query that finds where. Every query gives one column.
INVARIANTS: tuple[tuple[str, str], ...] = (
    (
        "message {} was changed before it was written, or in no revision",
        "SELECT sequence FROM messages_message WHERE changed_sequence < sequence OR revision < 1"
        " OR (revision = 1 AND changed_sequence != sequence)",
    ),
    (
        "message {} was updated before its timestamp",
        "SELECT sequence FROM messages_message WHERE updated_at < timestamp",
    ),
    (
        "message {} gives a size that its content does not have",
        "SELECT sequence FROM messages_message WHERE content_bytes != length(CAST(content AS BLOB))",
    ),
    (
        "message {} counts other relations and sources than it has",
        "SELECT sequence FROM messages_message AS m WHERE links !="
        " (SELECT count(*) FROM messages_relation AS r WHERE r.sequence = m.sequence)"
        " + (SELECT count(*) FROM messages_source AS s WHERE s.sequence = m.sequence)",
    ),
    (
        "a relation belongs to message {}, which is not there",
        "SELECT DISTINCT sequence FROM messages_relation WHERE sequence NOT IN (SELECT sequence FROM messages_message)",
    ),
    (
        "a source belongs to message {}, which is not there",
        "SELECT DISTINCT sequence FROM messages_source WHERE sequence NOT IN (SELECT sequence FROM messages_message)",
    ),
    (
        "a tag belongs to message {}, which is not there or has no tags",
        "SELECT DISTINCT sequence FROM messages_tag WHERE sequence NOT IN"
        " (SELECT sequence FROM messages_message WHERE tags != '')",
    ),
    (
        "message {} has tags that cannot be found by",
        "SELECT sequence FROM messages_message WHERE tags != ''"
        " AND sequence NOT IN (SELECT sequence FROM messages_tag)",
    ),
    (
        "the counts or times of {} groups of messages are not those of a recount",
        "WITH kept AS (SELECT session_id, project, memory_kind, count, first_at, last_at FROM messages_group),"
        " counted AS (SELECT session_id, project, memory_kind, count(*), min(timestamp), max(timestamp)"
        "  FROM messages_message GROUP BY session_id, project, memory_kind),"
        " wrong AS (SELECT * FROM (SELECT * FROM kept EXCEPT SELECT * FROM counted)"
        "  UNION ALL SELECT * FROM (SELECT * FROM counted EXCEPT SELECT * FROM kept))"
        " SELECT count(*) FROM wrong HAVING count(*) > 0",
    ),
    (
        "message {} was captured and has no number, or the other way round",
        "SELECT sequence FROM messages_message WHERE (number IS NULL) != (capture_kind IS NULL)"
        " OR (capture IS NULL) != (capture_kind IS NULL)",
    ),
    (
        "the session of the fingerprint of entry {} is not known, or was over before it came",
        "SELECT f.sequence FROM messages_fingerprint AS f LEFT JOIN messages_captured_session AS s USING (session)"
        " WHERE s.last_at IS NULL OR s.last_at < f.received_at",
    ),
    (
        "session {} of a hook left no fingerprint",
        "SELECT hex(session) FROM messages_captured_session WHERE session NOT IN"
        " (SELECT session FROM messages_fingerprint)",
    ),
    (
        "the receipt of message {} does not name it",
        "SELECT r.sequence FROM messages_receipt AS r JOIN messages_message AS m USING (sequence)"
        " WHERE m.message_id != r.message_id",
    ),
)


def check(connection: apsw.Connection) -> list[str]:
    """What is wrong with the tables of messages, one sentence each; empty if all is well."""
    violations: list[str] = []
    for sentence, query in INVARIANTS:
        violations += [sentence.format(where) for (where,) in connection.execute(f"{query} LIMIT {VIOLATIONS_MAX}")]
    return violations
