"""Texts cut into words, as a reader would cut them: what the topics of a person are counted by.

    spaced scripts   letters, digits and the marks on them; identifiers whole (getUserName, docker-compose, main.py)
    katakana         each run is a word: what is borrowed has no other boundary
    Han, hiragana    cut by ICU's dictionary
    Thai, Lao, Khmer, Myanmar   likewise

Where ICU cannot be loaded, such a run falls apart at the longer stop words it holds; what stands between them is a word
if it is short, else it falls into grams as it does for the search. Poorer topics, but mostly the same ones.

Addresses of pages and what stands for a secret are no words, and nothing is a neighbour across them.
Each letter's class is looked up once, so a text is cut by a pattern over its classes: no list of ranges has to name all
letters and marks of all scripts. Rejected: ICU for every script (it cuts identifiers at each hyphen, and borrowed
words in katakana in the middle).
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from typing import NamedTuple

from convmem.memory.stop_words import stop_words

Cut = Callable[[str, str], Iterable[str]]
# Without a dictionary: how long a word is at most, how long the grams of what is longer, and how long a stop word must
# be to be seen in the middle of a run; by the language of the run.
WORD_MAX, GRAM, STOP_WORD_MIN = {"zh": 4, "th": 12}, {"zh": 2, "th": 3}, {"zh": 1, "th": 4}

_NO_WORDS = re.compile(r"https?://[!-~]+|\[REDACTED:[^\[\]\s]{0,64}\]?")
_NARROW_OR_WIDE = re.compile("[\uff01-\uffee]+")
# Classes: a letter, digit or mark of a spaced script; h Han and hiragana; k katakana; t scripts that run on; what joins
# the parts of a word (. and _); anything else is a gap.
_WORD = re.compile(r"a+(?:(?:\.|_+\.?)a+)*|h+|k+|t+")
_SYMBOLIC = re.compile(r"[CFGJcfgj](?:\+\+|#)(?![^\W_])")
_JOINERS = {"'": ".", "\u2019": ".", ".": ".", "-": ".", "\u2010": ".", "_": "_"}
_IN_WORDS = "\u200c\u200d"
_HAN_AND_HIRAGANA = (
    *((0x2E80, 0x2FDF), (0x3005, 0x3007), (0x3021, 0x3029), (0x3041, 0x309F), (0x3105, 0x312F), (0x3400, 0x4DBF)),
    *((0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x3FFFD)),
)
_KATAKANA = ((0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF))
_RUN_ON = (
    *((0x0E01, 0x0E3A), (0x0E40, 0x0E4E), (0x0E81, 0x0ECE), (0x0EDC, 0x0EDF), (0x1000, 0x103F), (0x1050, 0x109D)),
    *((0x1780, 0x17D3), (0x17DC, 0x17DD)),
)
_CLASSES = (("h", _HAN_AND_HIRAGANA), ("k", _KATAKANA), ("t", _RUN_ON))
# The language whose dictionary cuts a run, by its first letter; Thai's is also asked for what else runs on.
_LANGUAGES = {"h": "zh", "t": "th"}


class Word(NamedTuple):
    """A word as written, and where it stands; between neighbours `start` and `end` are the same or one space apart."""

    text: str
    start: int
    end: int

    def follows(self, before: "Word", text: str) -> bool:
        """True if nothing but at most one space stands between the two in this text."""
        return text[before.end : self.start] in ("", " ")


class _Shapes(dict[int, str]):
    """The class of each letter; filled as letters come."""

    def __missing__(self, code_point: int) -> str:
        shape = self[code_point] = _shape(code_point)
        return shape


def _shape(code_point: int) -> str:
    letter = chr(code_point)
    for shape, ranges in _CLASSES:
        if any(first <= code_point <= last for first, last in ranges):
            return shape
    if letter in _JOINERS:
        return _JOINERS[letter]
    return "a" if letter in _IN_WORDS or unicodedata.category(letter)[0] in "LNM" else " "


_SHAPES = _Shapes()


def readable(text: str) -> str:
    """A text as it is cut: composed, Latin and kana in their usual width, without what is no word.

    Compatibility forms beyond that stay: folded, Thai would lose letters that the dictionary needs.
    """
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
        text = _NARROW_OR_WIDE.sub(lambda found: unicodedata.normalize("NFKC", found.group()), text)
    return _NO_WORDS.sub("\n", text)


def words(text: str) -> Iterator[str]:
    """The words of a text, in their order."""
    return (word.text for word in cut(readable(text)))


def cut(text: str) -> Iterator[Word]:
    """The words of a readable text with their places."""
    shapes = text.translate(_SHAPES)
    for found in _WORD.finditer(shapes):
        start, end = found.span()
        shape = shapes[start]
        if shape in _LANGUAGES:
            yield from _cut_run(text[start:end], start, _LANGUAGES[shape])
        elif end - start == 1 and shape == "a" and (symbolic := _SYMBOLIC.match(text, start)):
            yield Word(symbolic.group(), start, symbolic.end())
        else:
            yield Word(text[start:end], start, end)


def _cut_run(run: str, start: int, language: str) -> Iterator[Word]:
    by_dictionary = dictionary()
    if by_dictionary is None:
        for at in _pieces(run, language):
            yield Word(run[at], start + at.start, start + at.stop)
        return
    for piece in by_dictionary(run, language):
        yield Word(piece, start, start + len(piece))
        start += len(piece)


@cache
def dictionary() -> Cut | None:
    """What cuts a run of letters of a language into words; None where ICU cannot be loaded."""
    try:
        from icu4py.breakers import WordBreaker
    except ImportError:
        return None
    return WordBreaker


def _pieces(run: str, language: str) -> Iterator[slice]:
    """The stop words in a run, and what stands between them: as it is, or in overlapping grams."""
    start = 0
    for found in _stop_words(language).finditer(run):
        yield from _grams(start, found.start(), language)
        yield slice(*found.span())
        start = found.end()
    yield from _grams(start, len(run), language)


def _grams(start: int, end: int, language: str) -> Iterator[slice]:
    size = GRAM[language] if end - start > WORD_MAX[language] else end - start
    return (slice(at, at + size) for at in range(start, end - size + 1) if size)


@cache
def _stop_words(language: str) -> re.Pattern[str]:
    """Finds the stop words that can be told from parts of other words; the longest at each place."""
    known = sorted((word for word in stop_words() if len(word) >= STOP_WORD_MIN[language]), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, known)))
