"""Which rows a question finds, page by page.

The idea: a page is first a list of places, which are small, and then the rows, one by one. So whoever shows them may
stop at any row, because the reply is full, and the next page goes on right there. A place holds what the row was
ordered by when it was found: inserts, changes and deletions between two pages repeat nothing and hide nothing else.

Rejected: LIMIT on whole rows (a thousand of a megabyte each, of which a reply may hold eight).
"""

from contextlib import closing
from typing import Any, NamedTuple

import apsw

from convmem import cursors
from convmem.errors import InvalidCursor
from convmem.limits import ROWS_CURSOR_BYTES_MAX
from convmem.tables import ordering
from convmem.tables.conditions import Piece, to_sql
from convmem.tables.filters import Filter
from convmem.tables.ordering import Key, KeyValue, Place

EVERY_ROW = Piece("1")
# An id as a cursor holds it: bytes, where another program has put them, are told from a text.
CursorId = str | int | float | tuple[bytes] | None


class Question(NamedTuple):
    """What a page is a page of. `name` tells alike questions of different tables apart."""

    name: str
    filter: Filter | None = None
    order: tuple[Key, ...] = ordering.NEWEST_FIRST


class Page(NamedTuple):
    """The places of one page, in order, and whether more rows stand behind them. `unreadable` counts rows of the table
    that no page shows: their ids are no texts.
    """

    question: Question
    places: tuple[Place, ...]
    has_more: bool
    unreadable: int = 0

    def next_cursor(self, shown: int) -> str | None:
        """The cursor behind the first `shown` places, of which there is at least one; None if that was all."""
        if not self.has_more and shown == len(self.places):
            return None
        assert 1 <= shown <= len(self.places), "a page shows at least one row"
        keys, row_id = self.places[shown - 1]
        return cursors.cursor(self.question, (keys, (row_id,) if isinstance(row_id, bytes) else row_id))


def find(
    connection: apsw.Connection, question: Question, *, limit: int, offset: int = 0, cursor: str | None = None
) -> Page:
    """The next `limit` places of a question, `offset` rows further on. InvalidCursor if it belongs to another one."""
    try:
        return _find(connection, question, EVERY_ROW, limit, offset, cursor)
    except UnicodeDecodeError:
        # Another program may have put ids there that are no UTF-8: they hide no other row.
        are_texts = ids_that_are_texts(connection)
        page = _find(connection, question, are_texts, limit, offset, cursor)
        ((hidden,),) = connection.execute(f"SELECT count(*) FROM rows WHERE NOT {are_texts.sql}")
        return page._replace(unreadable=hidden)


def ids_that_are_texts(connection: apsw.Connection) -> Piece:
    """A condition on rows: the id is a text. The connection knows it from now on."""
    connection.create_scalar_function("is_utf8", _is_utf8, 1, deterministic=True)
    return Piece("is_utf8(CAST(id AS BLOB))")


def _is_utf8(*values: Any) -> bool:
    try:
        for data in values:
            (data or b"").decode()
    except UnicodeDecodeError:
        return False
    return True


def _find(
    connection: apsw.Connection, question: Question, among: Piece, limit: int, offset: int, cursor: str | None
) -> Page:
    filtered = _condition(question)
    keys = ordering.columns(question.order)
    after = EVERY_ROW if cursor is None else ordering.behind(question.order, _place(cursor, question))
    # Without this each comparison with the cursor would read the keys out of the JSON again; but a first page, and one
    # by time alone, is found sooner without it.
    reads_json = any(key.type != "time" for key in question.order)
    how = "MATERIALIZED" if cursor is not None and reads_json else "NOT MATERIALIZED"
    sql = (
        f"WITH ordered AS {how} (SELECT id{keys.sql} FROM rows WHERE {among.sql} AND {filtered.sql})"
        " SELECT * FROM ordered"
        f" WHERE {after.sql} ORDER BY {ordering.order_sql(question.order)} LIMIT ? OFFSET ?"
    )
    bindings = (*keys.bindings, *filtered.bindings, *after.bindings, limit + 1, offset)
    with closing(connection.cursor()) as found:
        places = [Place(tuple(row[1:]), row[0]) for row in found.execute(sql, bindings)]
    return Page(question, tuple(places[:limit]), len(places) > limit)


def count(connection: apsw.Connection, question: Question) -> int:
    """How many rows the question finds on all of its pages."""
    filtered = _condition(question)
    ((total,),) = connection.execute(f"SELECT count(*) FROM rows WHERE {filtered.sql}", filtered.bindings)
    return int(total)


def _condition(question: Question) -> Piece:
    return EVERY_ROW if question.filter is None else to_sql(question.filter)


def _place(given: str, question: Question) -> Place:
    if len(given) > ROWS_CURSOR_BYTES_MAX:
        raise InvalidCursor("this cursor is too long to be ours; start without one", field="cursor")
    keys, row_id = cursors.position(given, question, tuple[tuple[KeyValue, ...], CursorId])
    if len(keys) != len(question.order):
        raise InvalidCursor("this cursor does not belong to this question; start without one", field="cursor")
    return Place(keys, row_id[0] if isinstance(row_id, tuple) else row_id)
