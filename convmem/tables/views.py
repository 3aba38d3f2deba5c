"""Rows as they are read: one, a page of them, a text by its lines, the versions of one, and what a table is.

A page is first a list of places and then the rows, one by one, until the reply is full (pages.py). A row that another
program has filled with something else than a JSON object hides no other: it is shown without data, and says so.
"""

from typing import Any, NamedTuple, Protocol

import apsw

from convmem import cursors
from convmem.errors import NotFound, StorageFault
from convmem.limits import ROW_ECHO_BYTES_MAX
from convmem.tables import data as row_data
from convmem.tables import edits, filters, history, ordering, pages, queries, selection
from convmem.tables.inputs import ContentView, Get, List, RowHistory
from convmem.tables.model import Row
from convmem.tables.ordering import RowId
from convmem.tables.pages import Question
from convmem.tables.replies import Budget
from convmem.tables.scanning import Mount
from convmem.tables.selection import Selection


def info(connection: apsw.Connection, mount: Mount) -> dict[str, Any]:
    """What a table is: {table, scope, …schema, rows}."""
    return {**mount.schema.facts(), "scope": mount.scope, "rows": queries.count_rows(connection)}


def get(connection: apsw.Connection, mount: Mount, ask: Get) -> dict[str, Any]:
    """One row, as far as a reply holds it, with the hash of all of it for guards."""
    shown = selection.parse(ask.fields, mount.schema)
    row = queries.read_row(connection, ask.id).row
    whole = {**_facts(row, shown), "sha256": row_data.sha256(row.data)}
    facts = Budget(ask.reply_bytes_max).fit(whole, is_first=True)
    assert facts is not None
    return facts


def question_of(mount: Mount, ask: List) -> tuple[Question, Selection]:
    """What a page is asked for, checked against the schema."""
    asked = None if ask.filter is None else filters.parse(ask.filter, mount.schema)
    order = ordering.parse(ask.order_by, mount.schema)
    return Question(mount.table, asked, order), selection.parse(ask.fields, mount.schema)


class Wanted(Protocol):
    """Which page of a question is wanted, and how large the reply may be."""

    @property
    def limit(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def cursor(self) -> str | None: ...
    @property
    def with_total(self) -> bool: ...
    @property
    def reply_bytes_max(self) -> int: ...


class Page(NamedTuple):
    """The same, where no input says it."""

    limit: int
    offset: int
    cursor: str | None
    reply_bytes_max: int
    with_total: bool = False


def list_rows(connection: apsw.Connection, question: Question, shown: Selection, ask: Wanted) -> dict[str, Any]:
    """{rows, next_cursor, total?, unreadable?} of one page."""
    page = pages.find(connection, question, limit=ask.limit, offset=ask.offset, cursor=ask.cursor)
    budget, rows = Budget(ask.reply_bytes_max), list[dict[str, Any]]()
    for place in page.places:
        facts = budget.fit(_shown(connection, place.id, shown), is_first=not rows)
        if facts is None:
            break
        rows.append(facts)
    more = page.next_cursor(len(rows)) if rows else None
    total = {"total": pages.count(connection, question)} if ask.with_total else {}
    unreadable = {"unreadable": page.unreadable} if page.unreadable else {}
    return {"rows": rows, "next_cursor": more, **total, **unreadable}


def _shown(connection: apsw.Connection, row_id: RowId, shown: Selection) -> dict[str, Any]:
    if not isinstance(row_id, str):
        return {"id": str(row_id), "data": {}, "damaged": "the row has an id that is none"}
    try:
        return _facts(queries.read_exactly(connection, row_id).row, shown)
    except StorageFault as fault:
        return {"id": row_id, "data": {}, "damaged": fault.message}


def _facts(row: Row, shown: Selection) -> dict[str, Any]:
    return {**row.facts(), "data": shown.of(row.data)}


def view_text(connection: apsw.Connection, mount: Mount, ask: ContentView) -> dict[str, Any]:
    """{content, total_lines, next_line?, cut_line_bytes?} of a text of a row."""
    row = queries.read_row(connection, ask.id).row
    lines = None if ask.view_range is None else (ask.view_range[0], ask.view_range[1])
    found = edits.view(edits.text_of(row.data, ask.field), lines, bytes_max=ROW_ECHO_BYTES_MAX // 2)
    more = {"next_line": found.next_line, "cut_line_bytes": found.cut_line_bytes}
    facts = {"content": found.content, "total_lines": found.total_lines}
    return facts | {name: value for name, value in more.items() if value is not None}


def row_versions(connection: apsw.Connection, mount: Mount, ask: RowHistory) -> dict[str, Any]:
    """{id, versions, next_cursor, damaged?} newest first."""
    if mount.schema.history == "off":
        raise NotFound("this table keeps no history", field="id")
    row_id = queries.full_id_of_history(connection, mount.table, ask.id)
    question = ("row_history", mount.table, row_id)
    before = None if ask.cursor is None else cursors.position(ask.cursor, question, int)
    page = history.read(connection, mount.table, row_id, ask.limit, before)
    damaged = {"damaged": [list(damage) for damage in page.damaged]} if page.damaged else {}
    return {
        "id": row_id,
        "versions": [_version(version) for version in page.versions],
        "next_cursor": None if page.before is None else cursors.cursor(question, page.before),
        **damaged,
    }


def _version(version: history.Version) -> dict[str, Any]:
    origin = version.origin
    said = {} if origin is None else {"device": origin.device, "transport": origin.transport}
    client = {} if origin is None or origin.client is None else {"client": origin.client}
    return {
        "version": version.version,
        "op": version.op,
        "time": version.recorded_at,
        "origin": {**said, **client},
        "size_bytes": version.size_bytes,
    }
