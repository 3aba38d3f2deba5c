"""A text is edited as in an editor: what is not meant stays byte by byte, and what is not clear is refused."""

import time

import pytest

from convmem.errors import AmbiguousMatch, ContentTooLarge, Invalid, OutOfRange, TextNotFound, WrongType
from convmem.limits import EDIT_CANDIDATES_MAX, EDIT_TEXT_BYTES_MAX
from convmem.tables import edits

POEM = "one\ntwo\nthree\n"


@pytest.mark.parametrize(
    ("text", "lines"),
    [("", 0), ("a", 1), ("a\n", 1), ("\n", 1), ("a\n\n", 2), ("a\r\nb", 2), ("a\rb\u2028c\u0085d\x0be\x1cf", 1)],
)
def test_a_line_ends_behind_a_line_feed_and_nowhere_else(text: str, lines: int):
    assert edits.count_lines(text) == lines
    assert edits.view(text).total_lines == lines


def test_a_view_numbers_every_line_and_keeps_its_break():
    assert edits.view("one\r\ntwo") == edits.View("     1\tone\r\n     2\ttwo", 2)
    assert edits.view("") == edits.View("", 0)


def test_a_view_shows_a_range_under_the_numbers_of_the_whole_text():
    assert edits.view(POEM, (2, 2)) == edits.View("     2\ttwo\n", 3)
    assert edits.view(POEM, (2, edits.END)).content == "     2\ttwo\n     3\tthree\n"
    assert edits.view(POEM, (3, 99)).content == "     3\tthree\n"


@pytest.mark.parametrize("view_range", [(0, 2), (-3, -1), (4, 9), (4, edits.END), (3, 2), (2, -2)])
def test_a_range_outside_the_text_is_refused_with_its_length(view_range: edits.Range):
    with pytest.raises(OutOfRange) as refused:
        edits.view(POEM, view_range)
    assert refused.value.details == {"total_lines": 3}


def test_a_view_that_does_not_fit_says_where_to_go_on():
    first = edits.view(POEM, bytes_max=22)
    assert first == edits.View("     1\tone\n     2\ttwo\n", 3, next_line=3)
    assert first.next_line is not None
    assert edits.view(POEM, (first.next_line, edits.END), bytes_max=22).next_line is None


def test_a_line_that_alone_is_too_large_is_shown_by_its_start_and_size():
    seen = edits.view("é" * 100 + "\nb\n", bytes_max=10)
    assert seen == edits.View("     1\té", 2, next_line=2, cut_line_bytes=201)
    assert edits.view("b\n" + "é" * 100, bytes_max=10) == edits.View("     1\tb\n", 2, next_line=2)


def test_one_passage_is_replaced_and_the_rest_stays():
    assert edits.replace("a\r\nb\0c\u2028", "b\0", "B") == edits.Replaced("a\r\nBc\u2028", 1)
    assert edits.replace(POEM, "one\ntwo", "1\n2") == edits.Replaced("1\n2\nthree\n", 1)


def test_a_passage_is_no_pattern_and_no_template():
    assert edits.replace("a.c abc", "a.c", r"\1 $& {x}") == edits.Replaced(r"\1 $& {x} abc", 1)


def test_a_passage_that_is_not_there_is_refused():
    with pytest.raises(TextNotFound) as refused:
        edits.replace(POEM, "Two", "2")
    assert refused.value.details == {"total_lines": 3}
    with pytest.raises(TextNotFound):
        edits.replace("", "x", "y", replace_all=True)


def test_a_passage_that_stands_there_twice_is_refused_with_the_lines_of_the_whole_text():
    with pytest.raises(AmbiguousMatch) as refused:
        edits.replace("x\na a\nx\nb\nx\n", "x", "y", (3, 5))
    assert refused.value.details == {"kind": "AMBIGUOUS", "matches": 2, "candidates": [3, 5]}


def test_passages_that_overlap_are_ambiguous_too():
    with pytest.raises(AmbiguousMatch) as refused:
        edits.replace("aaa", "aa", "b")
    assert refused.value.details == {"kind": "AMBIGUOUS", "matches": 2, "candidates": [1]}
    assert edits.replace("aaa", "aa", "b", replace_all=True) == edits.Replaced("ba", 1)


def test_only_so_many_candidates_are_named():
    with pytest.raises(AmbiguousMatch) as refused:
        edits.replace("x x\n" * 50, "x", "y")
    assert refused.value.details["candidates"] == list(range(1, EDIT_CANDIDATES_MAX + 1))
    assert refused.value.details["matches"] == 100


def test_a_range_makes_a_passage_the_only_one():
    assert edits.replace("x\nx\nx\n", "x\n", "y\n", (2, 2)) == edits.Replaced("x\ny\nx\n", 1)
    assert edits.replace("x\nx\nx", "x", "", (2, edits.END), replace_all=True) == edits.Replaced("x\n\n", 2)


def test_a_passage_must_lie_wholly_in_the_range():
    with pytest.raises(TextNotFound):
        edits.replace(POEM, "two\nthree", "", (2, 2))


def test_nothing_is_not_looked_for():
    with pytest.raises(Invalid) as refused:
        edits.replace(POEM, "", "x")
    assert refused.value.details == {"field": "old_str"}


def test_a_text_that_would_grow_too_large_is_refused_before_it_is_made():
    begun = time.process_time()
    with pytest.raises(ContentTooLarge) as refused:
        edits.replace("a" * 1_000_000, "a", "é" * 1_000_000, replace_all=True)
    assert refused.value.details == {"bytes": 2_000_000_000_000, "bytes_max": EDIT_TEXT_BYTES_MAX}
    with pytest.raises(ContentTooLarge):
        edits.insert("a" * EDIT_TEXT_BYTES_MAX, 0, "b")
    assert time.process_time() - begun < 2


def test_the_worst_passages_are_found_in_time():
    text = "a" * 500_000
    begun = time.process_time()
    for old in ("a" * 250_000, "a" * 249_999 + "b", "aa"):
        with pytest.raises((AmbiguousMatch, TextNotFound)):
            edits.replace(text, old, "")
    assert time.process_time() - begun < 2


@pytest.mark.parametrize(
    ("line", "text", "at"),
    [
        (0, "new\none\ntwo\nthree\n", 1),
        (1, "new\none\ntwo\nthree\n", 1),
        (3, "one\ntwo\nnew\nthree\n", 3),
        (4, "one\ntwo\nthree\nnew\n", 4),
    ],
)
def test_what_is_inserted_becomes_the_line_that_was_named(line: int, text: str, at: int):
    assert edits.insert(POEM, line, "new") == edits.Inserted(text, at, 1)
    assert edits.insert(POEM, line, "new\n") == edits.Inserted(text, at, 1)


@pytest.mark.parametrize("line", [-1, 5, 2**62])
def test_a_line_beyond_the_text_is_refused_with_its_length(line: int):
    with pytest.raises(OutOfRange) as refused:
        edits.insert(POEM, line, "new")
    assert refused.value.details == {"total_lines": 3}


def test_a_last_line_without_a_break_gets_one_and_the_text_stays_open():
    assert edits.insert("one\ntwo", 3, "new") == edits.Inserted("one\ntwo\nnew", 3, 1)
    assert edits.insert("one\ntwo", 3, "new\n") == edits.Inserted("one\ntwo\nnew\n", 3, 1)
    assert edits.insert("one\ntwo", 2, "new") == edits.Inserted("one\nnew\ntwo", 2, 1)


def test_a_break_that_is_added_is_that_of_the_text():
    assert edits.insert("one\r\ntwo", 3, "new") == edits.Inserted("one\r\ntwo\r\nnew", 3, 1)
    assert edits.insert("one\r\ntwo\r\n", 2, "new") == edits.Inserted("one\r\nnew\r\ntwo\r\n", 2, 1)


def test_into_the_empty_text_goes_its_first_line():
    assert edits.insert("", 0, "new") == edits.insert("", 1, "new") == edits.Inserted("new", 1, 1)
    assert edits.insert("", 1, "") == edits.Inserted("\n", 1, 1)
    with pytest.raises(OutOfRange):
        edits.insert("", 2, "new")


def test_nothing_inserted_is_an_empty_line():
    assert edits.insert(POEM, 2, "") == edits.Inserted("one\n\ntwo\nthree\n", 2, 1)
    assert edits.insert("one", 2, "") == edits.Inserted("one\n\n", 2, 1)


@pytest.mark.parametrize("data", [{}, {"body": None}, {"body": 1}, {"body": ["a"]}, {"other": "a"}])
def test_a_field_that_holds_no_text_is_not_edited(data: dict[str, object]):
    with pytest.raises(WrongType) as refused:
        edits.text_of(data, "body")
    assert refused.value.details == {"field": "body"}
    assert edits.text_of({"body": ""}, "body") == ""
