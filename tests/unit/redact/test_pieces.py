"""The pieces of every shape: a key that a line break has split is one key, and what stands below a whole one stays."""

import re

import pytest

from convmem.redact.pieces import BREAK, ID, NEWLINE, PLACED, STOP, exact, open_ended, rest

EXACT = re.compile("k_" + exact("A-Za-z0-9", 20, 12))
CAPITALS = re.compile("K" + exact("A-Z0-9", 16, 16))
OPEN = re.compile("k-" + open_ended(ID, 8))


def taken(shape: re.Pattern[str], text: str) -> str | None:
    found = shape.search(text)
    return found[0] if found else None


@pytest.mark.parametrize("written", ["\n", "\r\n", "\r", "\\n", "\\\\n", "\\r\\n", "\\\n", "\n    ", "\\n\t"])
def test_a_line_break_is_one_however_it_is_written(written: str):
    assert re.fullmatch(BREAK, written)


@pytest.mark.parametrize("other", ["", " ", "\n\n", "n", "\\", "\\t", "\u2028"])
def test_nothing_else_is_a_line_break(other: str):
    assert not re.fullmatch(BREAK, other)
    assert re.fullmatch(NEWLINE, other) is None


@pytest.mark.parametrize("at", range(1, 20))
@pytest.mark.parametrize("written", ["\n", "\r\n  ", "\\n"])
def test_a_key_of_known_length_is_whole_wherever_it_is_split(at: int, written: str):
    key = "k_" + "Fake0" * 4
    split = key[: 2 + at] + written + key[2 + at :]
    assert taken(EXACT, f"a {split}\nand more") == split


def test_a_whole_key_takes_nothing_of_the_next_line():
    assert taken(EXACT, "k_" + "Fake0" * 4 + "\nsomething") == "k_" + "Fake0" * 4
    assert taken(EXACT, "k_" + "Fake0" * 3 + "\nand more") == "k_" + "Fake0" * 3
    assert taken(EXACT, "k_short\nand more") is None


def test_a_list_of_capital_words_is_no_split_key():
    assert taken(CAPITALS, "KAPPA\nKOPPA\nOMEGA\nSIGMA\nDELTA\n") is None
    assert taken(CAPITALS, "K234567ABCD\nEFGHIJ") == "K234567ABCD\nEFGHIJ"


@pytest.mark.parametrize("more", ["fake0fake0", "FAKEFAKEFAKE", "fakefakefakefakefake", "0fake-0fake_"])
def test_the_rest_of_a_key_of_any_length_is_taken(more: str):
    assert taken(OPEN, f"k-fake0fake\n{more}\nend") == f"k-fake0fake\n{more}"


@pytest.mark.parametrize(
    "below",
    ["and", "2026-10-01 ", "FOO_BAR1=1", "FOO_BAR1: 1", "function1(x)", "report1.txt", "path1234/to", "implementation"],
)
def test_what_is_no_rest_of_a_key_stays(below: str):
    assert re.fullmatch(rest(ID), "\n" + below) is None
    assert taken(OPEN, f"k-fake0fake\n{below}\nend") == "k-fake0fake"


def test_a_placeholder_is_known_with_and_without_its_end():
    assert re.fullmatch(PLACED, "[REDACTED:api_key]")
    assert re.fullmatch(PLACED, "[REDACTED:api_k…")
    assert not re.fullmatch(PLACED, "[REDACTED:api key]")
    assert re.search("a" + STOP, "a\n") is None
