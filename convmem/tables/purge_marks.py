"""That bytes of what was purged are still in a table's file: a mark in the file itself, until it is written anew.

A process that dies in between, or a disk that is full, must not leave for good what was purged; so the mark is made by
the transaction that made it necessary. It counts: who writes the file anew first looks how many purges there were, and
says afterwards that so many are out. One that came meanwhile stays marked.

Rejected: a flag that is cleared (a purge beside the one that writes the file anew would believe its bytes gone).
"""

from collections.abc import Callable

import apsw

CREATE = """
CREATE TABLE IF NOT EXISTS _purges (
    place INTEGER PRIMARY KEY CHECK (place = 1),
    made INTEGER NOT NULL,
    taken_out INTEGER NOT NULL
);
"""
NAME = "_purges"


def mark(connection: apsw.Connection) -> None:
    """Write down, in the transaction that is open, that something was purged."""
    connection.execute(
        "INSERT INTO _purges (place, made, taken_out) VALUES (1, 1, 0) ON CONFLICT DO UPDATE SET made = made + 1"
    )


def is_unfinished(connection: apsw.Connection) -> bool:
    """True if the file still holds bytes of what was purged."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = ?", (NAME,)).fetchone():
        return False
    return connection.execute("SELECT 1 FROM _purges WHERE made > taken_out").fetchone() is not None


def begun(connection: apsw.Connection) -> Callable[[], object]:
    """Look how many purges there were; what is returned writes down that they are out of the file."""
    row = connection.execute("SELECT made FROM _purges").fetchone()
    made = 0 if row is None else row[0]
    return lambda: connection.execute("UPDATE _purges SET taken_out = max(taken_out, ?)", (made,))
