"""strict_json: one parser, and it says no by rule and without repeating the text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from convmem import strict_json
from convmem.limits import INT64_MAX, INT64_MIN, JSON_LEVELS_MAX

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(INT64_MIN, INT64_MAX)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(VALUES)
def test_what_json_can_say_is_read_as_it_was_said(value: Any):
    assert strict_json.parse(json.dumps(value).encode()) == value
    assert strict_json.parse(json.dumps(value, ensure_ascii=False).encode()) == value


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b'{"a": 1, "a": 2}', "twice"),
        (b'{"o": {"secret-key": 1, "secret-key": 1}}', "twice"),
        (b'{"a": 1, "\\u0061": 2}', "twice"),
        (b"NaN", ""),
        (b'{"x": Infinity}', ""),
        (b"[-Infinity]", ""),
        (b"1e400", "number"),
        (b"9223372036854775808", "64 bits"),
        (b"-9223372036854775809", "64 bits"),
        (b'{"n": ' + b"9" * 5_000 + b"}", ""),
        (b'"\\ud83d"', ""),
        (b'{"\\ud800": 1}', ""),
        (b'"\xff"', ""),
        (b'"\xed\xa0\xbd"', ""),
        (b"", ""),
        (b"{", ""),
        (b"[1] [2]", ""),
        (b"\xef\xbb\xbf{}", ""),
        (b"{'a': 1}", ""),
        (b"[1,]", ""),
        (b'"a\nb"', ""),
        (b"01", ""),
    ],
)
def test_what_readers_could_read_in_two_ways_is_refused(text: bytes, reason: str):
    with pytest.raises(strict_json.MalformedJSON) as refused:
        strict_json.parse(text)
    assert reason in str(refused.value)
    assert "secret-key" not in str(refused.value)


def nested(levels: int, inner: bytes = b"") -> list[bytes]:
    return [b"[" * levels + inner + b"]" * levels, b'{"a":' * (levels - 1) + b"{" + b"}" * levels]


@pytest.mark.parametrize("text", nested(JSON_LEVELS_MAX))
def test_as_many_levels_as_allowed_are_read(text: bytes):
    strict_json.parse(text)


@pytest.mark.parametrize("text", [*nested(JSON_LEVELS_MAX + 1), *nested(100_000)])
def test_more_levels_are_refused(text: bytes):
    with pytest.raises(strict_json.MalformedJSON):
        strict_json.parse(text)


def test_numbers_keep_their_kind_and_value():
    assert strict_json.parse(b"[9223372036854775807, -9223372036854775808, 9007199254740993]") == [
        INT64_MAX,
        INT64_MIN,
        2**53 + 1,
    ]
    assert isinstance(strict_json.parse(b"10.0"), float)
    assert isinstance(strict_json.parse(b"10"), int)


def test_escapes_pairs_and_nul_are_text():
    assert strict_json.parse(b'"a\\u0000b\\ud83d\\udfe1\\u2028"') == "a\x00b🟡\u2028"


@pytest.mark.parametrize(
    ("text", "place"), [(b'{"a": x}', "at column 7"), (b'{\n"a": x}', "at line 2 column 6"), (b"{}\n]", "at line 2")]
)
def test_a_reason_names_a_line_only_where_there_are_several(text: bytes, place: str):
    with pytest.raises(strict_json.MalformedJSON) as refused:
        strict_json.parse(text)
    assert place in str(refused.value)
    assert ("line" in str(refused.value)) is ("line" in place)
