"""`like` in Python and in SQL: signs, escapes, case, U+0000, and no text that takes for ever."""

import apsw
import pytest

from convmem.limits import LIKE_PATTERN_BYTES_MAX
from convmem.tables import likeness

CASES = [
    ("", "", True),
    ("", "%", True),
    ("", "_", False),
    ("abc", "abc", True),
    ("abc", "ABC", True),
    ("abc", "ab", False),
    ("abc", "a%c", True),
    ("abc", "%b%", True),
    ("abc", "_b_", True),
    ("abc", "____", False),
    ("a%c", "a\\%c", True),
    ("abc", "a\\%c", False),
    ("a_c", "a\\_c", True),
    ("abc", "a\\_c", False),
    ("a\\c", "a\\\\c", True),
    ("abc", "\\a\\b\\c", True),
    ("É", "é", False),
    ("\u212a", "k", False),
    ("日本語", "_本%", True),
    ("\U0001f600", "_", True),
    ("e\u0301", "_", False),
    ("a\nb", "a%b", True),
    ("a\0b", "a", False),
    ("a\0b", "a%b", True),
    ("a\0b", "a_b", True),
    ("a\0b", "a\0b", True),
    ("ab", "a\0b", False),
    ("a\U000f0000b", "a\0b", False),
    ("a\U000f0000\0b", "a\U000f0000\0b", True),
    ("a\U000f0000\0b", "a\0\U000f0000b", False),
    ("\\u0000\0", "\\\\u0000_", True),
    ('"\0"', '"_"', True),
    ("aab", "%ab", True),
    ("mississippi", "%iss%ip%i", True),
    ("mississippi", "%iss%ip%x", False),
]


@pytest.mark.parametrize(("text", "pattern", "expected"), CASES)
def test_a_text_is_like_a_pattern(text: str, pattern: str, expected: bool):
    assert likeness.is_like(text, pattern) is expected
    condition, bindings = likeness.condition("v", pattern)
    connection = apsw.Connection(":memory:")
    assert connection.execute(f"SELECT {condition} FROM (SELECT ? AS v)", (*bindings, text)).fetchall() == [(expected,)]


@pytest.mark.parametrize("sign", ["a%", "a_", "a"])
def test_the_worst_pattern_takes_the_time_of_the_text(sign: str):
    pattern = "%" + sign * ((LIKE_PATTERN_BYTES_MAX - 2) // len(sign)) + "b"
    # Whoever tried every way to share the text out among the signs would not come back from any of these.
    assert not likeness.is_like("a" * 200_000, pattern)
    assert not likeness.is_like("a" * 200_000, pattern + "%")
    condition, bindings = likeness.condition("v", pattern)
    sql = f"SELECT {condition} FROM (SELECT ? AS v)"
    assert apsw.Connection(":memory:").execute(sql, (*bindings, "a" * 200_000)).fetchall() == [(0,)]


def test_whoever_looks_meanwhile_can_end_it():
    def look() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        likeness.is_like("a" * 200_000, "%a_b%", look)
    assert not likeness.is_like("a" * 200_000, "a_b", look), "nothing is looked for"


def test_a_stand_in_is_none_of_the_pattern_s_characters():
    pattern = "".join(map(chr, range(0xF0000, 0xF0010))) + "\0%"
    _, (stand_in, other, again, bound) = likeness.condition("v", pattern)
    assert stand_in == again != other
    assert {stand_in, other}.isdisjoint(pattern)
    assert bound == pattern.replace("\0", stand_in)
