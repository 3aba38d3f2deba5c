"""Rows of several tables on one page: what an alias over several tables without an aggregate finds.

The places of all tables are ordered together, then the rows are read one by one as far as the reply holds them, each
with the name of its table. Pages go on by an offset: a place of several tables is no place of one.
"""

from collections.abc import Sequence
from contextlib import closing
from typing import Any, NamedTuple

import apsw

from convmem.errors import StorageFault
from convmem.tables import ordering, pages, queries
from convmem.tables.aggregate import Source
from convmem.tables.conditions import Piece, to_sql
from convmem.tables.filters import Filter
from convmem.tables.model import Row
from convmem.tables.ordering import Key, RowId
from convmem.tables.replies import Budget
from convmem.tables.selection import Selection


class Asked(NamedTuple):
    """What a page of several tables is a page of."""

    filter: Filter | None
    order: tuple[Key, ...]
    selection: Selection
    limit: int
    offset: int
    reply_bytes_max: int


def rows(connection: apsw.Connection, sources: Sequence[Source], asked: Asked) -> dict[str, Any]:
    """{rows, next_offset}: each row with its `table`. A row whose id is no text hides no other."""
    try:
        places = _places(connection, sources, asked, pages.EVERY_ROW)
    except UnicodeDecodeError:
        places = _places(connection, sources, asked, pages.ids_that_are_texts(connection))
    budget, shown = Budget(asked.reply_bytes_max), list[dict[str, Any]]()
    for number, row_id in places[: asked.limit]:
        source = sources[number]
        facts = {"table": source.schema.table, **_facts(connection, source, row_id, asked.selection)}
        fitted = budget.fit(facts, is_first=not shown)
        if fitted is None:
            break
        shown.append(fitted)
    has_more = len(shown) < len(places)
    return {"rows": shown, "next_offset": asked.offset + len(shown) if has_more else None}


def _places(
    connection: apsw.Connection, sources: Sequence[Source], asked: Asked, among: Piece
) -> list[tuple[int, RowId]]:
    """Source and id of each row of the page, and of one more if there is one."""
    filtered = Piece("1") if asked.filter is None else to_sql(asked.filter)
    keys = ordering.columns(asked.order)
    arms = [
        f"SELECT {number} AS source, id{keys.sql} FROM {source.attached}.rows WHERE {among.sql} AND {filtered.sql}"
        for number, source in enumerate(sources)
    ]
    sql = (
        f"SELECT source, id FROM ({' UNION ALL '.join(arms)})"
        f" ORDER BY {ordering.order_sql(asked.order)}, source LIMIT ? OFFSET ?"
    )
    bindings = (*(*keys.bindings, *filtered.bindings) * len(sources), asked.limit + 1, asked.offset)
    with closing(connection.cursor()) as cursor:
        found: list[Any] = cursor.execute(sql, bindings).fetchall()
    return found


def _facts(connection: apsw.Connection, source: Source, row_id: RowId, selection: Selection) -> dict[str, Any]:
    if not isinstance(row_id, str):
        return {"id": str(row_id), "data": {}, "damaged": "the row has an id that is none"}
    sql = f"SELECT {queries.COLUMNS} FROM {source.attached}.rows WHERE id = ?"
    try:
        found = connection.execute(sql, (row_id,)).fetchone()
        assert found is not None, "the same moment"
        data = queries.read_data(found[1])
    except UnicodeDecodeError:
        return {"id": row_id, "data": {}, "damaged": "a row of the table holds a text that is no UTF-8"}
    except StorageFault as fault:
        return {"id": row_id, "data": {}, "damaged": fault.message}
    row = Row(id=row_id, data=data, created_at=found[2], updated_at=found[3])
    return {**row.facts(), "data": selection.of(row.data)}
