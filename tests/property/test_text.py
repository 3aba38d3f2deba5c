"""Laws of folding and cutting, for any text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convmem.text import Folded, cut_to_bytes, fold
from tests.support.texts import some_texts, texts

pytestmark = pytest.mark.slow


@given(texts)
@settings(derandomize=True, max_examples=300)
def test_folding_twice_is_folding_once(text: str):
    assert fold(fold(text)) == fold(text)


@given(texts)
@settings(derandomize=True, max_examples=300)
def test_case_does_not_matter(text: str):
    assert fold(text.upper().lower()) == fold(text.upper())


@given(st.lists(some_texts, min_size=1, max_size=60), st.data())
@settings(derandomize=True, max_examples=200)
def test_a_range_leads_back_to_the_shortest_part_that_folds_around_it(parts: list[str], data: st.DataObject):
    text = "".join(parts) * data.draw(st.sampled_from([1, 1, 40]))
    folded = Folded(text)
    start = data.draw(st.integers(0, len(folded.text) - 1))
    end = data.draw(st.integers(start + 1, min(start + 20, len(folded.text))))
    first, last = folded.original_range(start, end)
    assert 0 <= first < last <= len(text)
    assert fold(text[:first]) + fold(text[first:last]) + fold(text[last:]) == folded.text
    assert len(fold(text[:first])) <= start
    assert len(fold(text[:last])) >= end


@given(texts, st.integers(0, 40))
@settings(derandomize=True, max_examples=300)
def test_a_cut_is_the_longest_start_that_fits(text: str, bytes_max: int):
    cut = cut_to_bytes(text, bytes_max)
    assert text.startswith(cut)
    assert len(cut.encode()) <= bytes_max
    assert cut == text or len(text[: len(cut) + 1].encode()) > bytes_max
