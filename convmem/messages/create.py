"""The tables of messages in the index.

    messages_message    the live messages; `sequence`, the creating entry's, is the key and the order of everything
    messages_tag        which live messages bear a tag
    messages_relation   what a live message points at; rows outlive their target, so a reader can say it is missing
    messages_source     likewise, for what a message was made from
    messages_group      per session, project and kind: how many live messages, earliest and latest timestamp; what
                        the list of sessions reads instead of all messages
    messages_receipt    what idempotency keys left behind; outlives its message
    messages_fingerprint    what events of hooks left behind; outlives their messages until CAPTURE_KNOWN_MS after the
                        last event of the session
    messages_captured_session   when that was, by the daemon's clock
    messages_forgotten  sources of imported messages that are gone; kept for ever, so that they stay away
    messages_gone       which message went with which entry, for the tables of search, which follow (search_tables.py)
    messages_total      what this generation of the log holds in vain: `deleted` messages, `superseded` changes

`capture` holds what is known of a captured message as JSON, its kind once more beside it to be found by; `imported` and
`source` likewise of an imported one (two may have one source: a file of records says what it likes). `links` says
how many rows of relation and source a message has: nearly all have none and need no second look. `tags`
are joined with U+0000, which no tag holds. `content` stands behind all that is short: SQLite then reads its pages only
when asked for it.

What the search compares is kept folded (text.py), because folding a hundred thousand texts takes seconds and SQLite
itself folds ASCII only: `folded_content` where it is not simply lower(content), `folded_labels` of summary and tags if
there are any. The version of Unicode stands in the table's own text: with another one the index is made anew.
"""

from convmem.text import UNICODE_VERSION

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
    number INTEGER,
    capture_kind TEXT,
    capture TEXT,
    source BLOB,
    imported TEXT,
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
CREATE INDEX messages_by_change ON messages_message (changed_sequence);
CREATE INDEX messages_captured ON messages_message (capture_kind, sequence) WHERE capture_kind IS NOT NULL;
CREATE INDEX messages_imported ON messages_message (source) WHERE source IS NOT NULL;
CREATE UNIQUE INDEX messages_numbered ON messages_message (number) WHERE number IS NOT NULL;
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
CREATE TABLE messages_fingerprint (
    session BLOB NOT NULL,
    event BLOB NOT NULL,
    text BLOB NOT NULL,
    timestamp INTEGER NOT NULL,
    received_at INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (session, event)
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_fingerprint_by_text ON messages_fingerprint (session, text, timestamp);
CREATE INDEX messages_fingerprint_by_sequence ON messages_fingerprint (sequence);
CREATE TABLE messages_captured_session (
    session BLOB PRIMARY KEY,
    last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_captured_session_by_time ON messages_captured_session (last_at);
CREATE TABLE messages_forgotten (
    source BLOB PRIMARY KEY,
    forgotten_at INTEGER NOT NULL,
    sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE messages_gone (
    gone_sequence INTEGER NOT NULL,
    sequence INTEGER NOT NULL,
    PRIMARY KEY (gone_sequence, sequence)
) STRICT, WITHOUT ROWID;
CREATE TABLE messages_total (
    name TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
