"""The tables of memory in the index.

    memory_preference   the live preferences; `sequence`, the creating entry's, is the key of every table
    memory_lesson       the live lessons
    memory_section      the live sections of the profile
    memory_forgotten    names of records that are gone; kept for ever, so that a file of another program stays out of it
    memory_total        what this generation of the log holds in vain: `deleted` records, `superseded` statements

`name` is the hash that makes a preference or a lesson one (model.py). Ids are not unique: the store's own are, but a
file of others may say what it likes, and nothing depends on them. `folded` is what the search compares (text.py): key
and value, or the three texts, joined with U+0000. The version of Unicode stands in the tables' own text: with another
one the index is made anew.
"""

from convmem.text import UNICODE_VERSION

CREATE = f"""
CREATE TABLE memory_preference ( -- folded by Unicode {UNICODE_VERSION}
    sequence INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    preference_id TEXT NOT NULL,
    number INTEGER NOT NULL UNIQUE,
    category TEXT NOT NULL,
    key TEXT NOT NULL,
    value TEXT NOT NULL,
    confidence REAL NOT NULL,
    source TEXT NOT NULL,
    previous_value TEXT,
    project TEXT,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    changed_sequence INTEGER NOT NULL,
    device TEXT NOT NULL,
    transport TEXT NOT NULL,
    client TEXT,
    folded TEXT NOT NULL
) STRICT;
CREATE INDEX memory_preference_by_id ON memory_preference (preference_id);
CREATE INDEX memory_preference_by_change ON memory_preference (changed_sequence);
CREATE INDEX memory_preference_by_confidence ON memory_preference (confidence, changed_sequence);
CREATE INDEX memory_preference_by_category ON memory_preference (category);
CREATE INDEX memory_preference_by_creation ON memory_preference (created_at);
CREATE INDEX memory_preference_by_update ON memory_preference (updated_at);
CREATE TABLE memory_lesson ( -- folded by Unicode {UNICODE_VERSION}
    sequence INTEGER PRIMARY KEY,
    name BLOB NOT NULL UNIQUE,
    lesson_id TEXT NOT NULL,
    number INTEGER NOT NULL UNIQUE,
    situation TEXT NOT NULL,
    mistake TEXT NOT NULL,
    correction TEXT NOT NULL,
    project TEXT,
    created_at INTEGER NOT NULL,
    changed_sequence INTEGER NOT NULL,
    device TEXT NOT NULL,
    transport TEXT NOT NULL,
    client TEXT,
    folded TEXT NOT NULL
) STRICT;
CREATE INDEX memory_lesson_by_id ON memory_lesson (lesson_id);
CREATE INDEX memory_lesson_by_creation ON memory_lesson (created_at);
CREATE TABLE memory_section (
    sequence INTEGER PRIMARY KEY,
    section TEXT NOT NULL UNIQUE,
    content TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    changed_sequence INTEGER NOT NULL,
    device TEXT NOT NULL,
    transport TEXT NOT NULL,
    client TEXT
) STRICT;
CREATE TABLE memory_forgotten (
    name BLOB PRIMARY KEY,
    forgotten_at INTEGER NOT NULL,
    sequence INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE memory_total (
    name TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
"""
