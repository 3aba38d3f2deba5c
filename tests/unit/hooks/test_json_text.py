"""What is written by hand is what `json` would write, and reads back as what it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from convmem import strict_json
from convmem.hooks.json_text import encoded

TEXTS = some.text(some.characters(exclude_categories=["Cs"]))
FLAT = some.dictionaries(TEXTS, TEXTS | some.integers(-(2**63), 2**63 - 1) | some.none())


@given(FLAT)
def test_a_flat_object_is_written_as_json_writes_it(value: dict[str, Any]):
    assert encoded(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
    assert strict_json.parse(encoded(value)) == value
    assert b"\n" not in encoded(value)


@pytest.mark.parametrize("value", [{}, [], "a\n\u2028\u0000", 1, True, None, {"a": True}, {"a": [1.5, {"b": "ก"}]}])
def test_what_is_not_flat_is_written_too(value: Any):
    assert encoded(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def test_half_of_a_pair_of_surrogates_is_no_text():
    with pytest.raises(UnicodeEncodeError):
        encoded({"a": "\ud800"})
