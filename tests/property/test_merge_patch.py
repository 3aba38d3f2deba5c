"""Laws of merging a patch into a row, for any data."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.strict_json import parse
from convmem.tables.data import canonical, checked, merged, sha256, stored
from convmem.tables.model import TableSchema
from tests.support.texts import texts

pytestmark = pytest.mark.slow

NAMES = st.one_of(st.sampled_from("abcde"), texts.map(lambda text: text.replace("\0", "")))
NUMBERS = st.one_of(st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False, allow_infinity=False))
SCALARS = st.one_of(st.none(), st.booleans(), NUMBERS, texts)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=4
)
PATCHES = st.dictionaries(NAMES, VALUES, max_size=6)
ROWS = st.dictionaries(NAMES, VALUES.filter(lambda value: value is not None), max_size=6)
ANY = TableSchema(table="t", fields=())


@given(ROWS, PATCHES)
@settings(derandomize=True, max_examples=150)
def test_each_name_is_as_the_patch_says_or_as_it_was(row: dict[str, Any], patch: dict[str, Any]):
    result = merged(row, patch)
    for name in {**row, **patch}:
        if name not in patch:
            assert result[name] == row[name]
        elif patch[name] is None:
            assert name not in result
        else:
            assert result[name] == patch[name]
    assert set(result) <= {*row, *patch}


@given(ROWS, PATCHES)
@settings(derandomize=True, max_examples=150)
def test_a_patch_laid_over_twice_changes_nothing_more(row: dict[str, Any], patch: dict[str, Any]):
    once = merged(row, patch)
    assert sha256(merged(once, patch)) == sha256(once)
    assert merged(row, {}) == row


@given(ROWS, PATCHES, PATCHES)
@settings(derandomize=True, max_examples=150)
def test_two_patches_that_name_nothing_in_common_may_come_in_any_order(
    row: dict[str, Any], one: dict[str, Any], other: dict[str, Any]
):
    other = {name: value for name, value in other.items() if name not in one}
    assert merged(merged(row, one), other) == merged(merged(row, other), one) == merged(row, {**one, **other})


@given(ROWS, ROWS)
@settings(derandomize=True, max_examples=150)
def test_there_is_a_patch_from_any_row_to_any_other(row: dict[str, Any], other: dict[str, Any]):
    assert merged(row, {**dict.fromkeys(row), **other}) == other


@given(PATCHES)
@settings(derandomize=True, max_examples=150)
def test_what_was_checked_is_read_back_the_same_from_both_forms(data: dict[str, Any]):
    row = checked(ANY, data)
    assert row == data
    for form in (stored, canonical):
        again = parse(form(row))
        assert again == row
        assert sha256(again) == sha256(row)
    assert list(parse(stored(row))) == list(data)
