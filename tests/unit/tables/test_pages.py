"""A page may end at any row, and its cursor belongs to its question."""

from pathlib import Path
from typing import Any

import apsw
import pytest

from convmem.errors import InvalidCursor
from convmem.limits import ORDER_FIELDS_MAX, ROWS_CURSOR_BYTES_MAX
from convmem.tables import create, filters, ordering, pages
from convmem.tables.model import Field, TableSchema
from convmem.tables.pages import Question
from tests.support.table_oracle import SCHEMA, insert, table

BY_NUMBER = ordering.parse([{"field": "select"}], SCHEMA)
NUMBERS = [{"select": number} for number in (3, 1, 2, 5, 4)]


def ids(page: pages.Page) -> list[ordering.RowId]:
    return [place.id for place in page.places]


def test_a_page_goes_on_behind_whatever_was_shown():
    connection, question = table(NUMBERS), Question("t", None, BY_NUMBER)
    page = pages.find(connection, question, limit=4)
    assert ids(page) == ["01", "02", "00", "04"]
    assert page.has_more
    for shown in range(1, 5):
        rest = pages.find(connection, question, limit=9, cursor=page.next_cursor(shown))
        assert ids(rest) == ["01", "02", "00", "04", "03"][shown:]
        assert rest.next_cursor(len(rest.places)) is None


def test_a_last_page_that_is_not_shown_whole_has_a_cursor():
    page = pages.find(table(NUMBERS), Question("t"), limit=5)
    assert not page.has_more
    assert page.next_cursor(5) is None
    assert page.next_cursor(4) is not None


def test_a_page_of_nothing_has_no_cursor():
    page = pages.find(table([]), Question("t"), limit=5)
    assert page.places == ()
    assert page.next_cursor(0) is None


def test_an_offset_skips_and_a_count_does_not():
    connection, question = table(NUMBERS), Question("t", None, BY_NUMBER)
    assert ids(pages.find(connection, question, limit=2, offset=3)) == ["04", "03"]
    assert ids(pages.find(connection, question, limit=2, offset=9)) == []
    assert pages.count(connection, question) == 5


def test_a_new_row_shifts_no_page():
    connection, question = table(NUMBERS), Question("t", None, BY_NUMBER)
    first = pages.find(connection, question, limit=2)
    insert(connection, "zz", {"select": 0})
    insert(connection, "aa", {"select": 2.5})
    assert ids(pages.find(connection, question, limit=9, cursor=first.next_cursor(2))) == ["aa", "00", "04", "03"]


def test_a_row_that_ended_a_page_may_go():
    connection, question = table(NUMBERS), Question("t", None, BY_NUMBER)
    first = pages.find(connection, question, limit=2)
    connection.execute("DELETE FROM rows WHERE id = '02'")
    assert ids(pages.find(connection, question, limit=9, cursor=first.next_cursor(2))) == ["00", "04", "03"]


def asked(value: Any) -> filters.Filter:
    return filters.parse({"type": "eq", "field": "select", "value": value}, SCHEMA)


@pytest.mark.parametrize(
    "other",
    [
        Question("u", None, BY_NUMBER),
        Question("t", asked(1), BY_NUMBER),
        Question("t", None, ordering.parse([{"field": "select", "direction": "desc"}], SCHEMA)),
        Question("t", None, ordering.NEWEST_FIRST),
    ],
)
def test_a_cursor_of_another_question_is_refused(other: Question):
    connection = table(NUMBERS)
    cursor = pages.find(connection, Question("t", None, BY_NUMBER), limit=1).next_cursor(1)
    with pytest.raises(InvalidCursor):
        pages.find(connection, other, limit=1, cursor=cursor)


def test_one_and_one_point_nought_are_two_questions_only_for_a_cursor():
    connection = table([{"select": 1}, {"select": 1.0}])
    cursor = pages.find(connection, Question("t", asked(1)), limit=1).next_cursor(1)
    assert ids(pages.find(connection, Question("t", asked(1)), limit=1, cursor=cursor)) == ["01"]
    with pytest.raises(InvalidCursor):
        pages.find(connection, Question("t", asked(1.0)), limit=1, cursor=cursor)


@pytest.mark.parametrize("given", ["", "x", "日本", "A" * (ROWS_CURSOR_BYTES_MAX + 1), "0", "AAAAAAAAAAAA"])
def test_a_cursor_of_nobody_is_refused(given: str):
    with pytest.raises(InvalidCursor):
        pages.find(table(NUMBERS), Question("t"), limit=1, cursor=given)


def test_the_largest_cursor_fits():
    names = [f"f{number}" for number in range(ORDER_FIELDS_MAX)]
    schema = TableSchema(table="t", fields=tuple(Field(name=name, type="string") for name in names))
    order = ordering.parse([{"field": name} for name in names], schema)
    connection = table([dict.fromkeys(names, "日" * 1_000)] * 2)
    question = Question("t" * 64, None, order)
    cursor = pages.find(connection, question, limit=1).next_cursor(1)
    assert cursor is not None
    assert len(cursor) <= ROWS_CURSOR_BYTES_MAX
    assert ids(pages.find(connection, question, limit=1, cursor=cursor)) == ["01"]


def test_a_file_of_others_with_times_that_are_none_has_pages_too():
    connection = table([{}] * 4)
    connection.execute("UPDATE rows SET created_at = 'yesterday' WHERE id < '02'")
    connection.execute("UPDATE rows SET created_at = NULL WHERE id = '03'")
    cursor, found = None, []
    while True:
        page = pages.find(connection, Question("t"), limit=1, cursor=cursor)
        found += ids(page)
        if (cursor := page.next_cursor(1)) is None:
            break
    assert found == ["02", "00", "01", "03"]


def test_a_page_goes_on_behind_an_id_that_is_none():
    connection = table([{}] * 2)
    connection.execute("INSERT INTO rows VALUES (NULL, '{}', 0, 0), (x'41', '{}', 0, 0)")
    cursor, found = None, list[ordering.RowId]()
    while len(found) < 9:
        page = pages.find(connection, Question("t"), limit=1, cursor=cursor)
        found += ids(page)
        if (cursor := page.next_cursor(1)) is None:
            break
    assert found == [None, "00", "01", b"A"]


def test_the_newest_rows_are_found_without_looking_at_all_others(tmp_path: Path):
    connection = apsw.Connection(str(tmp_path / "t.db"))
    create.prepare(connection)
    plans: list[str] = []
    statements: list[str] = []
    connection.exec_trace = lambda cursor, sql, bindings: statements.append(sql) or True
    pages.find(connection, Question("t"), limit=5)
    connection.exec_trace = None
    for _, _, _, plan in connection.execute(f"EXPLAIN QUERY PLAN {statements[-1]}", (5, 0)):
        plans.append(str(plan))
    assert plans == ["SCAN rows USING COVERING INDEX rows_newest"]
