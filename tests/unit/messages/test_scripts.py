"""Which letters are joined and which run on; the word table keeps every one of them."""

import sys
import unicodedata

import apsw
import pytest

from convmem.messages.scripts import JOINED_RUN, RUN_ON_RUN
from convmem.messages.search_tables import CREATE
from convmem.text import fold

CODE_POINTS = [chr(value) for value in range(sys.maxunicode + 1) if not 0xD800 <= value < 0xE000]
JOINED = [letter for letter in CODE_POINTS if JOINED_RUN.match(letter)]
RUN_ON = [letter for letter in CODE_POINTS if RUN_ON_RUN.match(letter)]


@pytest.mark.parametrize("run", ["日本語", "ひらがな", "カタカナー", "𠮷野", "한글", "ㄅㄆ", "々〆〇"])
def test_han_kana_and_hangul_are_joined(run: str):
    assert JOINED_RUN.fullmatch(fold(run))


@pytest.mark.parametrize("run", ["ภาษาไทย", "น้ํา", "ພາສາລາວ", "ភាសាខ្មែរ", "မြန်မာ"])
def test_thai_lao_khmer_and_myanmar_run_on(run: str):
    assert RUN_ON_RUN.fullmatch(fold(run))


@pytest.mark.parametrize(
    "text", ["。", "、", "！", "「", "・", "～", "abc", "кот", "é", "हिन्दी", " ", "\0", "๏", "។", "၊", "ㅤ"]
)
def test_marks_and_spaced_scripts_are_neither(text: str):
    assert not JOINED_RUN.search(fold(text))
    assert not RUN_ON_RUN.search(fold(text))


def test_no_letter_is_both():
    assert not set(JOINED) & set(RUN_ON)


def test_joined_letters_are_no_punctuation_and_no_space():
    assert {unicodedata.category(letter)[0] for letter in JOINED} <= {"L", "N", "M", "S", "C"}


@pytest.mark.slow
def test_every_pair_of_joined_letters_is_one_token_of_the_word_table():
    connection = apsw.Connection(":memory:")
    connection.execute(CREATE)
    connection.execute("CREATE VIRTUAL TABLE word_row USING fts5vocab(messages_word, 'row')")
    letters = [letter for letter in JOINED if fold(letter) == letter]
    tokens = sorted(map("".join, zip(letters[::2], letters[1::2], strict=False)))
    connection.execute("INSERT INTO messages_word (rowid, content) VALUES (1, ?)", (" ".join(tokens),))
    assert [term for (term,) in connection.execute("SELECT term FROM word_row ORDER BY term")] == tokens
