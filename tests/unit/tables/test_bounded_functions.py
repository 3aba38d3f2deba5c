"""Functions of SQL on long texts: SQLite's answers, whoever works them out, and never for longer than is allowed."""

from collections.abc import Iterator
from typing import Any

import apsw
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.errors import QueryLimit
from convmem.limits import LIKE_PATTERN_BYTES_MAX
from convmem.tables import bounded_functions
from convmem.tables.bounded_functions import FUNCTIONS, TEXT_BYTES_MAX, BoundedFunctions, TooLong

MEGABYTE = 1 << 20
NAMES = sorted(set(FUNCTIONS) - {"glob", "json_patch"})
TEXTS = st.text("aAbé%_\\\0日", max_size=12)
VALUES = TEXTS | st.none() | st.integers(-3, 120) | st.sampled_from([1.5, 1e20, b"ab", b""])


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    opened = apsw.Connection(":memory:")
    yield opened
    opened.close()


def answer(connection: apsw.Connection, name: str, arguments: Any) -> Any:
    sql = f"SELECT {name}({', '.join('?' * len(arguments))})"
    try:
        return connection.execute(sql, arguments).fetchall()[0][0]
    except apsw.SQLError as error:
        return str(error)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
@settings(max_examples=150)
@given(values=st.lists(VALUES, min_size=3, max_size=3))
def test_what_is_short_is_answered_by_sqlite(name: str, values: list[Any]):
    plain, bounded = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    BoundedFunctions(bounded)
    for count in FUNCTIONS[name][0]:
        assert answer(bounded, name, values[:count]) == answer(plain, name, values[:count])


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=300)
@given(values=st.lists(TEXTS, min_size=3, max_size=3))
def test_what_is_long_has_the_same_answer(name: str, values: list[str]):
    plain, bounded = apsw.Connection(":memory:"), apsw.Connection(":memory:")
    BoundedFunctions(bounded)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_functions, "PAIRS_MAX", -1)
        for count in FUNCTIONS[name][0]:
            given_ = values[:count]
            if name == "like" and count == 3:
                given_ = [*values[:2], (values[2] or "x")[0]]
                if given_[2] in "%_\0":
                    continue
            assert answer(bounded, name, given_) == answer(plain, name, given_), given_


@pytest.mark.parametrize(
    ("sql", "values", "expected"),
    [
        ("instr(?, ?)", ("a" * MEGABYTE, "a" * (MEGABYTE // 2) + "b"), 0),
        ("instr(?, ?)", ("a" * MEGABYTE + "b", "a" * (MEGABYTE // 2) + "b"), MEGABYTE // 2 + 1),
        ("length(replace(?, ?, 'x'))", ("a" * MEGABYTE, "a" * (MEGABYTE // 2) + "b"), MEGABYTE),
        ("length(replace(?, ?, 'x'))", ("a" * MEGABYTE, "a" * (MEGABYTE // 2)), 2),
        ("length(trim(?, ?))", ("a" * MEGABYTE, "b" * MEGABYTE + "a"), 0),
        ("length(ltrim(?, ?))", ("b" + "a" * MEGABYTE, "c" * MEGABYTE + "b"), MEGABYTE),
        ("length(rtrim(?, ?))", ("a" * MEGABYTE + "b", "c" * MEGABYTE + "b"), MEGABYTE),
        ("? LIKE ?", ("a" * MEGABYTE, "%" + "a" * 200 + "b%"), 0),
        ("? LIKE ? ESCAPE '!'", ("a" * MEGABYTE + "%", "%" + "a" * 200 + "!%"), 1),
    ],
)
def test_long_texts_take_the_time_of_their_length(connection: apsw.Connection, sql: str, values: Any, expected: int):
    BoundedFunctions(connection)
    assert connection.execute(f"SELECT {sql}", values).fetchall() == [(expected,)]


@pytest.mark.parametrize(
    ("sql", "values"),
    [
        ("? GLOB ?", ("a" * MEGABYTE, "*" + "a" * 200 + "b*")),
        ("json_patch(?, ?)", ("[" + " " * MEGABYTE + "]", "[" + " " * MEGABYTE + "]")),
        ("instr(?, ?)", (b"a" * MEGABYTE, "a" * MEGABYTE)),
        ("replace(?, ?, 'x')", (b"a" * MEGABYTE, "a" * MEGABYTE)),
        ("trim(?, ?)", (b"a" * MEGABYTE, "a" * MEGABYTE)),
        ("replace(?, 'aaaaaaaa', ?)", ("a" * MEGABYTE, "b" * 100)),
        ("? LIKE ?", ("a" * MEGABYTE, "%" * (LIKE_PATTERN_BYTES_MAX + 1))),
    ],
)
def test_what_cannot_be_answered_in_time_is_refused(connection: apsw.Connection, sql: str, values: Any):
    connection.limit(apsw.SQLITE_LIMIT_LENGTH, TEXT_BYTES_MAX)
    BoundedFunctions(connection)
    with pytest.raises((TooLong, apsw.TooBigError, apsw.SQLError)):
        connection.execute(f"SELECT {sql}", values).fetchall()


def test_a_call_that_is_under_way_is_ended_when_the_time_is_over(connection: apsw.Connection):
    looks = 0

    def look() -> None:
        nonlocal looks
        looks += 1
        if looks > 5:
            raise QueryLimit("over", ms_max=1)

    functions = BoundedFunctions(connection)
    functions.watch(look)
    question = "SELECT ? LIKE ?", ("a" * MEGABYTE, "%a_a" + "a" * 100 + "b%")
    with pytest.raises(QueryLimit):
        connection.execute(*question).fetchall()
    functions.watch(None)
    assert connection.execute(*question).fetchall() == [(0,)]
