"""Folding makes equal what people see as equal, knows its way back, and no cut splits a code point."""

import sys
import unicodedata

import pytest

from convmem.text import Folded, cut_to_bytes, fold, is_code_point_start

SAME = [
    ("é", "e\u0301"),
    ("É", "é"),
    ("ＡＢＣ", "abc"),
    ("Straße", "STRASSE"),
    ("ΟΔΟΣ", "οδος"),
    ("οδος", "οδοσ"),
    ("ﬁn", "fin"),
    ("ｶﾞ", "ガ"),
    ("각", "\u1100\u1161\u11a8"),
    ("น้ำ", "น้\u0e4d\u0e32"),
    ("ນຳ", "ນ\u0ecd\u0eb2"),
    ("①", "1"),
    ("ŉ", "ʼn"),
]
# What may stand before a code point and reach for it.
GREEDY = ("", "e\u0323", "\u1100\u1161", "\u09c7", "ﾊ", "か")


@pytest.mark.parametrize(("left", "right"), SAME)
def test_texts_that_look_alike_fold_alike(left: str, right: str):
    assert fold(left) == fold(right)


@pytest.mark.parametrize("text", ["", "a\0b", "plain", "日本語", "x\u2028y", "\U0010ffff"])
def test_folding_loses_nothing(text: str):
    assert fold(text) == text


def restless() -> list[str]:
    """Every code point that folding changes, or that may join one before it."""
    every = (chr(value) for value in range(sys.maxunicode + 1) if not 0xD800 <= value < 0xE000)
    return [
        code_point
        for code_point in every
        if fold(code_point) != code_point
        or unicodedata.category(code_point).startswith("M")
        or 0x1100 <= ord(code_point) < 0x1200
    ]


@pytest.mark.slow
def test_folding_twice_changes_nothing_for_any_code_point():
    for code_point in restless():
        folded = fold(code_point)
        assert fold(folded) == folded, ascii(code_point)


@pytest.mark.slow
def test_segments_side_by_side_are_the_whole_text_whatever_follows_what():
    code_points = restless()
    for before in GREEDY:
        folded = Folded("".join(before + code_point for code_point in code_points))
        at = offset = 0
        while offset < len(folded.text):
            start, end = folded.original_range(offset, offset + 1)
            segment = fold(folded.original[start:end])
            assert start == at
            assert folded.text[offset : offset + len(segment)] == segment, ascii(folded.original[start:end])
            at, offset = end, offset + len(segment)
        assert at == len(folded.original)


@pytest.mark.parametrize(
    ("text", "query", "found"),
    [
        ("İİİ key ﬁn ＡＢＣ", "KEY", "key"),
        ("İİİ key ﬁn ＡＢＣ", "fin", "ﬁn"),
        ("İİİ key ﬁn ＡＢＣ", "i", "İ"),
        ("İİİ key ﬁn ＡＢＣ", "abc", "ＡＢＣ"),
        ("ﬁn", "in", "ﬁn"),
        ("cafe\u0301 au lait", "é", "e\u0301"),
        ("ＡＢＣ" * 400 + " Straße", "strasse", "Straße"),
    ],
)
def test_a_place_in_folded_text_leads_back_to_the_original(text: str, query: str, found: str):
    folded = Folded(text)
    start = folded.text.index(fold(query))
    first, last = folded.original_range(start, start + len(fold(query)))
    assert text[first:last] == found


def test_a_text_of_marks_only_is_one_segment_and_still_mapped():
    text = "a" + "\u0301" * 3_000
    folded = Folded(text)
    assert folded.original_range(2_000, 2_001) == (0, len(text))


@pytest.mark.parametrize(
    ("text", "bytes_max", "cut"),
    [
        ("abc", 3, "abc"),
        ("abc", 2, "ab"),
        ("aé", 2, "a"),
        ("日本", 5, "日"),
        ("日本", 6, "日本"),
        ("\U0001f600", 3, ""),
        ("a\0b", 2, "a\0"),
        ("", 0, ""),
    ],
)
def test_a_cut_keeps_whole_code_points(text: str, bytes_max: int, cut: str):
    assert cut_to_bytes(text, bytes_max) == cut


def test_code_points_begin_where_utf8_says():
    encoded = "aé日\U0001f600".encode()
    starts = [at for at, byte in enumerate(encoded) if is_code_point_start(byte)]
    assert starts == [0, 1, 3, 6]
