"""Databases of other programs, as copies that were made to be read: opened, and what tables are in them.

Rejected: the connections of the store. These files are somebody else's, may be damaged in any way, and are thrown away.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw


class Damaged(Exception):
    """The database cannot be read; the message is SQLite's."""


@contextmanager
def opened(copy: Path) -> Iterator[apsw.Connection]:
    """A connection to a copy, with what waits in its WAL. Damaged, also for what is met inside the block: damage is
    told in many ways, as corruption, as no database, as a file format or a schema of its own.
    """
    connection = apsw.Connection(str(copy))
    try:
        connection.execute("SELECT count(*) FROM sqlite_schema").fetchall()
        yield connection
    except (apsw.Error, UnicodeError) as error:
        raise Damaged(str(error)) from None
    finally:
        connection.close()


def tables(connection: apsw.Connection) -> dict[str, frozenset[str]]:
    """The tables, and the columns of each."""
    names = [str(row[0]) for row in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")]
    of_table = "SELECT name FROM pragma_table_info(?)"
    return {name: frozenset(str(row[0]) for row in connection.execute(of_table, (name,))) for name in names}
