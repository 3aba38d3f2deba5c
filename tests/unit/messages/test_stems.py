"""Words of one English word become one, and a word can be told from a term before its ending is taken off."""

import pytest

from convmem.messages.stems import root, stem, stop_words

WORDS = """
    plan plans planned planning happy happily happiness die dies dying died lie lying tie tying hope hoping skies sky
    relational relate possibly possibilities generously bring brings ring ringing kings go going goes cry cries yes
    university universal organization organizes abilities able visited visiting agreement agreed controlling
"""


def test_forms_of_a_word_become_one():
    assert len({stem(word) for word in ("plan", "plans", "planned", "planning")}) == 1
    assert stem("dying") == stem("dies") == "die"
    assert stem("happy") == stem("happiness") == "happi"


@pytest.mark.parametrize("word", ["é" * 4, "naïve", "utf8", "is", "a" * 33, "планы", "日本", "don't", ""])
def test_what_is_no_plain_word_stays_as_it_is(word: str):
    assert stem(word) == word


@pytest.mark.parametrize("word", WORDS.split())
def test_every_word_begins_with_the_root_of_what_it_becomes(word: str):
    assert word.startswith(root(stem(word)))


def test_a_root_is_never_empty():
    assert [root(word) for word in ("a", "ab", "die", "plan")] == ["a", "a", "d", "pla"]


def test_stop_words_are_tokens():
    assert {"the", "what", "dont", stem("having")} <= stop_words()
    assert stop_words().isdisjoint({"id", "plan", "go"})
