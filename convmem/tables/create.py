"""What a table's file holds, and how an older one catches up: rows, their history, receipts, and a schema to come.

The layout of rows and history is that of mini-app-mcp, so that its files work here and ours there. `_receipts`,
`_schema_pending` and `_purges` are ours: what a repeated `create` is answered, the text of a schema.yaml that was
committed with the rows that fit it but has not been put in its place yet, and whether the file still holds bytes of
what was purged.

A list shows the newest rows first; `rows_newest` lets it stop once a page is full. Its expression is that of a time in
ordering.py, since a file of another program may hold something else than a number there.

Rejected: CHECK constraints on rows (a file of another program would not have them, and ours must not depend on them).
"""

import apsw

from convmem.errors import StorageFault
from convmem.tables import history, purge_marks

CREATE = """
CREATE TABLE IF NOT EXISTS rows (
    id TEXT PRIMARY KEY,
    data TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS rows_newest ON rows (CASE typeof(created_at) WHEN 'integer' THEN created_at END DESC, id);
CREATE TABLE IF NOT EXISTS _receipts (
    device TEXT NOT NULL,
    key BLOB NOT NULL,
    arguments BLOB NOT NULL,
    row_id TEXT NOT NULL,
    version INTEGER,
    recorded_at INTEGER NOT NULL,
    sha256 BLOB NOT NULL,
    PRIMARY KEY (device, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS _receipts_recorded_at ON _receipts (recorded_at);
CREATE TABLE IF NOT EXISTS _schema_pending (
    place INTEGER PRIMARY KEY CHECK (place = 1),
    yaml BLOB
);
"""
# What is there once a file is prepared, beside the column that history.py adds.
NAMES = frozenset(
    ("rows", "rows_newest", "_row_history", "_row_history_archive", "_receipts", "_schema_pending", purge_marks.NAME)
)
ROWS = {"id", "data", "created_at", "updated_at"}


def prepare(connection: apsw.Connection) -> None:
    """Make what is missing, in the transaction that is open. StorageFault as below."""
    refuse_without_rows(connection)
    connection.execute(CREATE + purge_marks.CREATE)
    history.prepare(connection)


def refuse_without_rows(connection: apsw.Connection) -> None:
    """StorageFault if another program has taken the rows out of a table's file, or columns of them: what is empty then
    shall not look like a table that never had any.
    """
    there = {row[0] for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    columns = {row[1] for row in connection.execute("PRAGMA table_info(rows)")}
    if "rows" not in there and there & NAMES:
        raise StorageFault("the table rows is gone from its file")
    if "rows" in there and not columns >= ROWS:
        raise StorageFault("the table rows in its file lacks columns")
