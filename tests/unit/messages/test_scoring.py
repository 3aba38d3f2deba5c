"""A score adds up from its fields, and says more for what is rarer, nearer and shorter."""

from math import isclose, log

import pytest

from convmem.messages.scoring import BESIDE_WEIGHTS, K1, NEIGHBOUR_LENGTH, B, Said, Scoring, idf
from convmem.messages.terms import Found

NOTHING = Found({}, 0)
ALONE = (None,) * len(BESIDE_WEIGHTS)
IDFS = [2.0, 5.0]


def said(
    content: Found = NOTHING,
    *,
    summary: Found = NOTHING,
    tags: Found = NOTHING,
    beside: tuple[Found | None, ...] = ALONE,
    circumstances: tuple[int, ...] = (),
) -> Said:
    return Said(content, summary, tags, beside, circumstances)


def score(what: Said, mean_words: float = 10) -> float:
    scores = Scoring(IDFS, mean_words).scores(what)
    return 0.0 if scores is None else sum(scores.values())


def beside(place: int, neighbour: Found) -> tuple[Found | None, ...]:
    return (*ALONE[:place], neighbour, *ALONE[place + 1 :])


def test_a_rarer_term_says_more_and_every_term_says_something():
    assert idf(100, 1) > idf(100, 50) > idf(100, 100) > idf(100, 200) > 0
    assert isclose(idf(10, 2), log(1 + 8.5 / 2.5))
    assert score(said(Found({1: 1}, 10))) > score(said(Found({0: 1}, 10)))


def test_it_is_bm25_of_the_message_with_all_its_neighbours():
    words = round(10 + NEIGHBOUR_LENGTH * sum(BESIDE_WEIGHTS) * 10)
    assert isclose(score(said(Found({1: 3}, words), beside=ALONE)), 5.0 * (K1 + 1) * 3 / (3 + K1))
    twice = said(Found({1: 3}, 20), beside=tuple(Found({}, 20) for _ in BESIDE_WEIGHTS))
    assert isclose(score(twice), 5.0 * (K1 + 1) * 3 / (3 + K1 * (1 - B + B * 2)))


def test_the_fields_share_one_saturation_by_their_weights():
    scores = Scoring(IDFS, 10).scores(said(Found({0: 1}, 5), summary=Found({0: 1}, 1), tags=Found({0: 1}, 1)))
    assert scores is not None
    assert isclose(scores["summary"], 1.5 * scores["content"])
    assert isclose(scores["tags"], 2 * scores["content"])
    assert sum(scores.values()) < IDFS[0] * (K1 + 1)


def test_the_nearer_neighbour_counts_more_and_less_than_the_message_itself():
    own, first, second = (
        score(said(Found({0: 1}, 10), beside=beside(0, Found({}, 10)))),
        score(said(Found({}, 10), beside=beside(0, Found({0: 1}, 10)))),
        score(said(Found({}, 10), beside=beside(2, Found({0: 1}, 10)))),
    )
    assert own > first > second > 0
    assert first == score(said(Found({}, 10), beside=beside(1, Found({0: 1}, 10))))


def test_long_messages_and_talkative_neighbours_count_less():
    assert score(said(Found({0: 1}, 10))) > score(said(Found({0: 1}, 100)))
    near = Found({0: 1}, 10)
    assert score(said(near, beside=beside(0, near))) > score(said(near, beside=beside(0, Found({0: 1}, 1_000))))


def test_when_and_by_whom_adds_to_the_context_but_matches_nothing_alone():
    assert Scoring(IDFS, 10).scores(said(Found({}, 10), circumstances=(0, 1))) is None
    scores = Scoring(IDFS, 10).scores(said(Found({0: 1}, 10), circumstances=(1,)))
    assert scores is not None
    assert scores["context"] > 0


def test_a_date_that_no_text_names_does_not_outweigh_a_word():
    word = Scoring([14.0], 10).scores(said(Found({0: 1}, 10)))
    date = Scoring([1.0, 14.0], 10).scores(said(Found({0: 1}, 10), circumstances=(1,)))
    assert word is not None
    assert date is not None
    assert date["context"] < word["content"] / 2


@pytest.mark.parametrize("what", [said(), said(Found({}, 10)), said(beside=beside(0, Found({}, 5)))])
def test_what_holds_no_term_has_no_score(what: Said):
    assert Scoring(IDFS, 10).scores(what) is None


def test_a_store_of_empty_messages_divides_by_nothing():
    assert score(said(Found({0: 1}, 1)), mean_words=0) > 0
