"""A text is found by the words of its script, however they are written, and counted as it was stored."""

from collections import Counter

import pytest

from convmem.limits import SEARCH_RANKED_TERMS_MAX
from convmem.messages import terms
from convmem.messages.terms import Found, asked, circumstances, found, indexed, ranges
from convmem.text import fold


def tokens(text: str) -> list[str]:
    joined, _ = indexed(text, fold(text))
    return joined.split()


def length(text: str) -> int:
    return indexed(text, fold(text))[1]


def counted(query: str, text: str) -> dict[str, float]:
    """The query's terms that a text holds, and how often."""
    terms_asked = asked(query)
    return {terms_asked.terms[place]: count for place, count in found(terms_asked, text, fold(text)).counts.items()}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The kids planned it", "the kid plan it"),
        ("getUserName", "getusernam get user name"),
        ("HTTPServer", "httpserver http server"),
        ("my_tag node.js e-mail", "mytag my tag nodej node js email mail"),
        ("utf8 v2", "utf8 utf v2"),
        ("1.5 2026-05-08 POL-358", "1.5 2026-05-08 2026 05 08 pol358 pol 358"),
        ("Caroline's don't don’t o'clock", "carolin dont dont oclock clock"),
        ("C++ and C#, i++", "c++ and c# i++"),
        ("naïve ＡＢＣ ﬁn e\u0301te\u0301", "naïve abc fin été"),
        ("Привет, мир", "привет мир"),
        ("ΣΊΣΥΦΟΣ", "σίσυφοσ"),
        ("नमस्ते दुनिया", "नमस्ते दुनिया"),
        ("مَرْحَبًا مرحبا", "مرحبا مرحبا"),
        ("שָׁלוֹם שלום", "שלום שלום"),
        ("می\u200cخواهم", "میخواهم می خواهم"),
        ("東京都 雨", "東京 京都 都 雨"),
        ("한국어", "한국 국어 어"),
        ("ｶﾞｷﾞ", "ガギ ギ"),
        ("\u1112\u1161\u11ab\u1100\u116e\u11a8", "한국 국"),
        ("กินข้าว มา", "กิน ินข นข้ ข้า ้าว มา"),
        ("設備(devices) NAS后50", "devic nas 50 設備 備 后"),
        ("❤️ 🟡🟢 ok", "❤ 🟡 🟢 ok"),
        ("x\x00y \ufffe ()[] …", "x y"),
        ("", ""),
    ],
)
def test_a_text_becomes_tokens(text: str, expected: str):
    assert tokens(text) == expected.split()


def test_a_chunk_that_is_no_word_counts_by_its_beginning_and_whole_parts():
    assert tokens("a" * 10_000) == ["a" * terms.CHUNK_CODE_POINTS_MAX]
    assert tokens("-".join(["ab"] * 100)) == ["ab" * (terms.CHUNK_CODE_POINTS_MAX // 2)]
    assert tokens("550e8400-e29b-41d4-a716-446655440000")[1:] == ["550e8400", "e29b", "41d4", "a716", "446655440000"]


def test_the_length_is_that_in_words_and_letters_without_spaces():
    assert [
        length(text) for text in ("the quick fox", "getUserName", "東京都", "กินข้าว", "мир, мир", "", "東京 fox")
    ] == [
        *(3, 1, 3, 7, 2, 0, 3),
    ]


def test_remembered_chunks_are_bounded_and_long_ones_are_not_remembered(monkeypatch: pytest.MonkeyPatch):
    chunks = terms._Chunks()
    monkeypatch.setattr(terms, "_CACHED_CHUNKS_MAX", 3)
    for number in range(10):
        assert chunks[f"word{'abcdefghij'[number]}"]
    assert len(chunks) <= 3
    assert chunks["x" * 1_000]
    assert "x" * 1_000 not in chunks


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What did the kids plan?", "kid plan"),
        ("to be or not to be", "to be or not"),
        ("I have a C 7", "i have a c 7"),
        ("plan plans planning", "plan"),
        ("重跑gen-itgc后", "genitgc gen itgc 重跑 后 重 跑"),
        ("雨", "雨"),
        ("です", "です"),
        ("() … \x00", ""),
    ],
)
def test_a_query_becomes_its_significant_terms(query: str, expected: str):
    assert list(asked(query).terms) == expected.split()


def test_the_letters_that_no_token_stands_for_come_last():
    terms_asked = asked("東京都")
    assert (terms_asked.terms, terms_asked.letters) == (("東京", "京都", "東", "京", "都"), range(2, 5))


def test_a_query_has_so_many_terms_at_most():
    letters = "".join(map(chr, range(0x4E00, 0x4E00 + 500)))
    for query in (" ".join(f"word{number}" for number in range(500)), letters):
        assert len(asked(query).terms[: asked(query).letters.start]) == SEARCH_RANKED_TERMS_MAX
    assert len(asked(letters).letters) == SEARCH_RANKED_TERMS_MAX


TEXTS = [
    "The kids planned; getUserName() plans. Don't PLAN-b, happy dying happily",
    "naïve Plans ＰＬＡＮ 東京都の東京 plan",
    "กินข้าวกินข้าว มา plan",
    "ああああ 日日日 plan’s",
    "한국어 한국 ❤️🟡 c++ C#",
    "مَرْحَبًا נשָׁלוֹם नमस्ते",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("query", [*TEXTS, "happier die dies user names", "กนก มา กิน", "ああ 日日 plans"])
def test_what_is_counted_is_what_was_indexed(query: str, text: str):
    terms_asked = asked(query)
    stored = Counter(tokens(text))
    known = terms_asked.terms[: terms_asked.letters.start]
    counts = found(terms_asked, text, fold(text)).counts
    assert {term: counts[place] for place, term in enumerate(known) if place in counts} == {
        term: stored[term] for term in known if stored[term]
    }


def test_an_ascii_text_is_counted_whatever_its_capitals_and_a_folded_one_need_not_be_folded():
    assert counted("user plan", "USER Plans getUser") == {"user": 2, "plan": 1}
    assert found(asked("東京"), "東京 ABC", "東京 ABC") == found(asked("東京"), "東京 ABC", "東京 abc")


def test_letters_count_only_beside_another_term():
    assert counted("東京都", "京の東") == {}
    assert counted("東京都", "東京の東") == {"東京": 1, "東": 2, "京": 1}


def test_what_overlaps_itself_is_counted_at_every_place():
    assert counted("ああ", "ああああ") == {"ああ": 3}
    assert counted("กกก", "กกกกก") == {"กกก": 3}


def test_chunks_that_hold_nothing_are_remembered_within_bounds(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(terms, "_CACHED_CHUNKS_MAX", 4)
    terms_asked = asked("plan")
    for number in range(20):
        assert found(terms_asked, f"plan x{number}", f"plan x{number}") == Found({0: 1}, 2)
    assert len(terms_asked.of_chunk) <= 4


@pytest.mark.parametrize(
    ("query", "text", "expected"),
    [
        ("plan user", "We planned the getUser", ["planned:plan", "getUser:user"]),
        ("東京都", "İİ 東京都 東", ["東京:東京", "京都:京都"]),
        ("น้ำ ok", "OK น้ำ", ["OK:ok", "น้ำ:น้ํ", "น้ำ:้ํา"]),
        ("ガギ", "x ｶﾞｷﾞ", ["ｶﾞｷﾞ:ガギ"]),
        ("absent", "We planned it, 東京", []),
    ],
)
def test_terms_are_shown_where_they_stand_in_the_text_as_it_is_written(query: str, text: str, expected: list[str]):
    terms_asked = asked(query)
    places = list(ranges(terms_asked, text))
    assert places == sorted(places)
    assert [f"{text[start:end]}:{terms_asked.terms[place]}" for start, end, place in places] == expected


def test_a_message_has_tokens_of_when_and_by_whom_it_was_said():
    assert circumstances(1_683_554_160_000, "user") == ["2023", "may", "8", "2023-05-08", "user"]
    assert set(circumstances(1_693_554_160_000, "user")) & set(asked("in September 2023").terms) == {"2023", "septemb"}
    assert circumstances(0, "system")[0] == "1970"


@pytest.mark.parametrize("timestamp", [2**63 - 1, -1, 10**15])
def test_a_time_without_a_date_has_none(timestamp: int):
    assert circumstances(timestamp, "user") == ["user"]


def test_what_stands_in_capitals_or_where_all_counts_is_no_stop_word():
    assert terms.asked("the IT department").terms == ("it", "depart")
    assert terms.asked("THE IT DEPARTMENT").terms == ("depart",)
    assert terms.asked("the it department x", is_whole=True).terms == ("the", "it", "depart")
