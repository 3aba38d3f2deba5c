"""A cursor belongs to its question and leads back to its place."""

from typing import Any

import pytest

from convmem import cursors
from convmem.errors import InvalidCursor

QUESTION = ("history", "s", None, "asc")


@pytest.mark.parametrize(("position", "kind"), [(7, int), (2**63 - 1, int), ((5, "日\x01" * 64), tuple[int, str])])
def test_a_cursor_leads_back_to_its_place(position: Any, kind: Any):
    given = cursors.cursor(QUESTION, position)
    assert len(given) < 600
    assert given.isascii()
    assert cursors.position(given, QUESTION, kind) == position


@pytest.mark.parametrize(
    "given",
    [
        "x",
        "=",
        "日本",
        "////",
        "AAAAAAAAAAAA",
        "0",
        "7",
        cursors.cursor(QUESTION, 7) + "=",
        cursors.cursor(QUESTION, 7) + "\n",
        cursors.cursor(QUESTION, 7)[:-1],
        cursors.cursor(QUESTION, "7"),
        cursors.cursor(("history", "t", None, "asc"), 7),
        cursors.cursor(("history", "s", None, "desc"), 7),
        cursors.cursor(("export", None), 7),
    ],
)
def test_a_cursor_of_another_question_or_of_nobody_is_refused(given: str):
    with pytest.raises(InvalidCursor):
        cursors.position(given, QUESTION, int)
