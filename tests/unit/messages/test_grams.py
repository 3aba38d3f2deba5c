"""What holds a part of a text has the grams and tokens of that part, wherever it was cut and however it is written."""

from itertools import combinations

import apsw
import pytest

from convmem.messages.grams import MARKS, first_letters, forms, gram_text, grams, held_tokens, loose, marked, pairs
from convmem.text import fold

TEXTS = [
    "plain words",
    "Ticket (POL-358) 日本語のテキスト、です。",
    "東京に住む abc 雨",
    "e\u0301\u0323o\u0323\u0301 caf\u00e9",
    "\u1112\u1161\u11ab\u1100\u1173\u11af 한글",
    "か\u3099き\u3099 ﾊﾟﾋﾟ ㌀",
    "ΟΔΟΣ ς İstanbul Straße ﬃ",
    "a\0b\x03\x03c\x1ed\ufffe\uffff\U0010ffff",
    "\U00020000\U0002a6df𠮷野家",
    "ขอน้ำ ភាសាខ្មែរ",
    "👨\u200d👩\u200d👧 ❤\ufe0f",
    "\ue000\U000f0000\U00100000",
]


def parts(text: str) -> list[str]:
    return [text[start:end] for start, end in combinations(range(len(text) + 1), 2) if end - start <= 9]


def grams_of_table(text: str) -> set[str]:
    """The grams as SQLite cuts them."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE VIRTUAL TABLE g USING fts5(body, tokenize='trigram case_sensitive 1')")
    connection.execute("CREATE VIRTUAL TABLE r USING fts5vocab(g, 'row')")
    connection.execute("INSERT INTO g VALUES (?)", (text,))
    return {term for (term,) in connection.execute("SELECT term FROM r")}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_folded_letter_by_letter_is_its_parts_folded_so(text: str):
    for cut in range(len(text) + 1):
        assert loose(text[:cut]) + loose(text[cut:]) == loose(text)


def test_folding_letter_by_letter_joins_nothing():
    assert loose("É e\u0301 ß K") == "é e\u0301 ss k"
    assert fold("e\u0301") != loose("e\u0301")


def test_there_is_a_second_form_only_where_folding_joins():
    assert list(forms("Straße É", fold("Straße É"))) == ["strasse é"]
    assert list(forms("e\u0301", fold("e\u0301"))) == ["é", "e\u0301"]
    assert list(forms("ABC", "abc")) == ["abc"]


@pytest.mark.parametrize("text", TEXTS)
def test_the_text_of_the_table_has_the_grams_of_every_part_in_either_form(text: str):
    known = grams_of_table(gram_text(forms(text, fold(text))))
    for part in parts(text):
        forms_held = [loose(part)] + ([fold(part)] if fold(part) in fold(text) else [])
        for form in forms_held:
            assert set(grams(form)) <= known, form


@pytest.mark.parametrize("text", TEXTS)
def test_every_letter_outside_joined_runs_begins_a_gram(text: str):
    known = grams_of_table(gram_text(forms(text, fold(text))))
    for letter in marked(fold(text)):
        assert any(gram.startswith(letter) for gram in known)


@pytest.mark.parametrize("text", TEXTS)
def test_the_tokens_of_every_part_are_tokens_of_the_text(text: str):
    known = {*pairs(fold(text)), *pairs(loose(text)), *first_letters(fold(text)), *first_letters(loose(text))}
    for part in parts(text):
        for form in [loose(part)] + ([fold(part)] if fold(part) in fold(text) else []):
            assert set(held_tokens(form)) <= known, form


@pytest.mark.parametrize(
    ("part", "tokens"),
    [
        ("日本語", ["日本", "本語"]),
        ("日", []),
        ("a日", ["日"]),
        ("日。", ["日"]),
        ("は、本だ", ["は", "本", "本だ"]),
        ("、本だ。", ["本", "本だ", "だ"]),
        ("日日日", ["日日"]),
        ("abc", []),
        ("é", []),
    ],
)
def test_a_run_that_may_go_on_before_or_behind_the_part_says_nothing_about_its_ends(part: str, tokens: list[str]):
    assert held_tokens(part) == tokens


def test_joined_runs_are_two_marks_and_two_marks_end_the_text():
    assert gram_text(["ab日本c", "d"]) == f"ab{MARKS}c\x1ed{MARKS}"
    assert list(pairs("日本語 a 雨")) == ["日本", "本語", "語", "雨"]


def test_no_part_has_a_gram_twice():
    assert grams("aaaaaa") == ["aaa"]
    assert grams("ab") == []
