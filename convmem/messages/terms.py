"""What a text is found by when it is found by words: one tokenizer for what is stored and what is asked.

    spaced scripts   words: letters, digits and the marks on them. English endings are taken off (stems.py). What is
                     joined by one `'`, `_`, `.` or `-`, or changes case or between letters and digits inside, is there
                     as a whole and in parts: `getUserName` is getusername, get, user, name
    joined scripts   pairs of letters, and the last letter of each run, as the exact search needs them (grams.py). Of a
                     query each ideograph counts as well, though no token stands for it: where it is found by pairs, the
                     text itself tells whether it holds them
    run on           three letters at a time; a shorter run as it stands
    symbols          pictures (emoji) one by one

`indexed` writes the tokens of a text, `found` counts those of a query in a text: both by the same rules, so a search
without tables counts what one with tables does. A run of letters between two gaps (a chunk) is worked out once and
remembered: texts consist of few different ones.

Stop words are kept in the tables and dropped from the query: there they only cost, and a query of nothing but stop
words still finds something. Rejected: dropping them from both (`to be or not to be`), word lists of scripts that run
on (a dictionary and a licence for each), accents taken off (they make words of most languages into other words).
"""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from heapq import merge
from itertools import chain
from typing import NamedTuple

from convmem.limits import SEARCH_RANKED_TERMS_MAX
from convmem.messages.grams import pairs
from convmem.messages.scripts import JOINED, JOINED_RUN, RUN_ON, RUN_ON_RUN
from convmem.messages.stems import root, stem, stop_words
from convmem.text import Folded, fold

RUN_ON_LETTERS = 3
# Longer chunks are no words: they count by their beginning.
CHUNK_CODE_POINTS_MAX = 64
PARTS_MAX = 8
_CACHED_CHUNKS_MAX = 1 << 15
_MONTHS = (
    *("january", "february", "march", "april", "may", "june", "july"),
    *("august", "september", "october", "november", "december"),
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_DAY_MS = 24 * 3600 * 1000
_LAST_YEAR_MS = (datetime(9999, 12, 31, tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)

_ASCII_CHUNK = re.compile(r"[A-Za-z](?:\+\+|#)|[A-Za-z0-9]+(?:['_.\-][A-Za-z0-9]+)*")
_IDEOGRAPH = re.compile("[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003fffd]")
_UNSPACED = re.compile(f"[{JOINED}{RUN_ON}]").search
_JOINER = re.compile(r"['\u2019\u200c_.\-]")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
# What English writes behind an apostrophe: no word of its own.
_ENDING = re.compile(r"['\u2019](?:t|re|ve|ll|d|m)$", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['\u2019]s$", re.IGNORECASE)
# What may be written at a letter or left out: vowels of Hebrew and Arabic, the stretched line, the joiner.
_OPTIONAL = re.compile("[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200d]")


class Found(NamedTuple):
    """The query's terms in one text: how often each stands there, by its place in the query, and the text's length."""

    counts: Mapping[int, float]
    words: int


class _Chunks(dict[str, str]):
    """The tokens of a chunk, joined with spaces; filled as chunks come, emptied when it is full."""

    def __missing__(self, chunk: str) -> str:
        tokens = " ".join(_tokens(chunk))
        if len(chunk) <= CHUNK_CODE_POINTS_MAX:
            if len(self) >= _CACHED_CHUNKS_MAX:
                self.clear()
            self[chunk] = tokens
        return tokens


_CHUNKS = _Chunks()


def indexed(text: str, folded: str) -> tuple[str, int]:
    """The tokens of one field for the word table, joined with spaces, and its length in words."""
    chunks = _chunk_pattern(text).findall(text)
    tokens: Iterable[str] = map(_CHUNKS.__getitem__, chunks)
    if folded.isascii():
        return " ".join(tokens), len(chunks)
    return " ".join(chain(tokens, pairs(folded), _run_on(folded))), len(chunks) + _letters(folded, chunks)


def circumstances(timestamp: int, role: str) -> list[str]:
    """The tokens of when (ms since the epoch, UTC) and by whom a message was said."""
    return _on_day(timestamp // _DAY_MS, role) if 0 <= timestamp <= _LAST_YEAR_MS else [role]


@lru_cache(maxsize=4_096)
def _on_day(day: int, role: str) -> list[str]:
    at = (_EPOCH + timedelta(days=day)).date()
    return [str(at.year), stem(_MONTHS[at.month - 1]), str(at.day), at.isoformat(), role]


class Asked:
    """The terms of a query, without what says nothing; prepared once for many texts.

    `letters` are the places, the last ones, of those that no token stands for: nobody knows how many messages hold one.
    """

    def __init__(self, tokens: Iterable[str], letters: Iterable[str]) -> None:
        known = tuple(tokens)
        self.terms = (*known, *letters)
        self.letters = range(len(known), len(self.terms))
        self.places = {term: place for place, term in enumerate(self.terms)}
        self.of_chunk = _PlacesOfChunk(self.places)
        counters = ((place, _counter(term)) for place, term in enumerate(self.terms))
        self.in_runs = [(place, counter) for place, counter in counters if counter]


class _PlacesOfChunk(dict[str, tuple[int, ...]]):
    """Which terms of a query a chunk holds; filled as chunks come, emptied when it is full."""

    def __init__(self, places: dict[str, int]) -> None:
        super().__init__()
        self._places = places
        self._roots = tuple({root(term) for term in places})

    def __missing__(self, chunk: str) -> tuple[int, ...]:
        found: tuple[int, ...] = ()
        if self._may_hold(chunk):
            found = tuple(self._places[token] for token in _CHUNKS[chunk].split(" ") if token in self._places)
        if len(self) >= _CACHED_CHUNKS_MAX:
            self.clear()
        self[chunk] = found
        return found

    def _may_hold(self, chunk: str) -> bool:
        """Taking off endings costs more than all else, and is needed only where a word begins like a term."""
        if not chunk.isascii():
            return True
        if chunk.islower() and chunk.isalpha():
            return chunk.startswith(self._roots)
        letters = _JOINER.sub("", chunk).lower()
        return letters.startswith(self._roots) or any(map(letters.__contains__, self._roots))


def asked(query: str, *, is_whole: bool = False) -> Asked:
    """The significant terms of a query, or with `is_whole` its stop words as well; SEARCH_RANKED_TERMS_MAX at most,
    none if it is marks and spaces only. What stands in capitals among other letters (IT, WHO) is no stop word.
    """
    tokens: dict[str, None] = {}
    loud: set[str] = set()
    folded = fold(query)
    for chunk in _chunk_pattern(query).findall(query):
        tokens |= dict.fromkeys(_CHUNKS[chunk].split())
        if is_whole or (len(chunk) > 1 and chunk.isupper() and not query.isupper()):
            loud |= {token for token in _CHUNKS[chunk].split() if len(token) > 1}
    for letters in JOINED_RUN.findall(folded):
        tokens |= dict.fromkeys(list(pairs(letters))[:-1] or [letters])
    tokens |= dict.fromkeys(_run_on(folded))
    significant = [token for token in tokens if token in loud or not _says_nothing(token)]
    ideographs = [letter for letter in dict.fromkeys(_IDEOGRAPH.findall(folded)) if letter not in tokens]
    return Asked((significant or list(tokens))[:SEARCH_RANKED_TERMS_MAX], ideographs[:SEARCH_RANKED_TERMS_MAX])


def _says_nothing(token: str) -> bool:
    return token in stop_words() or (len(token) == 1 and token.isascii())


def found(asked: Asked, text: str, folded: str) -> Found:
    """Count the terms of a query in one field, as `indexed` writes them; letters only beside another term, but wherever
    they stand.

    Of `folded` only what is not ASCII is looked at: capital Latin letters in it do no harm.
    """
    chunks = _chunk_pattern(text).findall(text)
    counts: dict[int, int] = {}
    for places in filter(None, map(asked.of_chunk.__getitem__, chunks)):
        for place in places:
            counts[place] = counts.get(place, 0) + 1
    if folded.isascii():
        return Found(counts, len(chunks))
    for place, count_in in asked.in_runs:
        if place in asked.letters and not counts:
            break
        if count := count_in(folded):
            counts[place] = count
    return Found(counts, len(chunks) + _letters(folded, chunks))


def _letters(folded: str, chunks: list[str]) -> int:
    """How many letters of scripts without spaces a folded text has beside these chunks, each of which begins a token;
    with the marks between them, because counting without those takes ten times as long.
    """
    if not _UNSPACED(folded):
        return 0
    return max(0, len(folded) - len("".join(chunks)) - folded.count(" "))


def _run_on(folded: str) -> Iterator[str]:
    """The tokens of a folded text in scripts that run on."""
    for letters in RUN_ON_RUN.findall(folded):
        for at in range(max(1, len(letters) - RUN_ON_LETTERS + 1)):
            yield letters[at : at + RUN_ON_LETTERS]


def _counter(term: str) -> Callable[[str], int] | None:
    """What counts a term in a folded text if it is of a script without spaces; None if it is a word."""
    if RUN_ON_RUN.fullmatch(term) and len(term) < RUN_ON_LETTERS:
        pattern = f"(?<![{RUN_ON}]){term}(?![{RUN_ON}])"
    elif JOINED_RUN.fullmatch(term) or RUN_ON_RUN.fullmatch(term):
        if len(term) == 1 or term[0] != term[-1]:
            return lambda folded: folded.count(term)
        # It may overlap with itself.
        pattern = f"(?={term})"
    else:
        return None
    find = re.compile(pattern).findall
    return lambda folded: len(find(folded))


def ranges(asked: Asked, text: str) -> Iterator[tuple[int, int, int]]:
    """Where terms stand in a text, as it is written: (start, end, place of the term in the query), by start."""
    words = (
        (*chunk.span(), place)
        for chunk in _chunk_pattern(text).finditer(text)
        for place in asked.of_chunk[chunk.group()]
    )
    if not asked.in_runs or text.isascii():
        return words
    folded = Folded(text)
    in_runs = (
        (*folded.original_range(start, start + len(asked.terms[place])), place)
        for start, place in sorted(
            (found.start(), place)
            for place, _ in asked.in_runs
            if place not in asked.letters
            for found in re.finditer(f"(?={asked.terms[place]})", folded.text)
        )
    )
    return merge(words, in_runs)


def _chunk_pattern(text: str) -> re.Pattern[str]:
    return _ASCII_CHUNK if text.isascii() else _any_chunk()


@cache
def _any_chunk() -> re.Pattern[str]:
    """What is a chunk in any script with spaces. Compiled when the first text needs it: marks must be collected."""
    first = rf"[^\W_{JOINED}{RUN_ON}]"
    word = f"(?:{first}+[{_marks()}]*)+"
    pictures = "\u2600-\u27bf\U0001f300-\U0001faff"
    return re.compile(rf"[A-Za-z](?:\+\+|#)|{word}(?:['\u2019\u200c_.\-]{word})*|[{pictures}]")


def _marks() -> str:
    """Combining marks of scripts with spaces, and the joiner that stands in their words."""
    found = [0x200D]
    for code_point in chain(range(0x300, 0x2E80), range(0xA000, 0x1F000)):
        letter = chr(code_point)
        if unicodedata.category(letter)[0] == "M" and not JOINED_RUN.match(letter) and not RUN_ON_RUN.match(letter):
            found.append(code_point)
    return "".join(map(chr, found))


def _tokens(chunk: str) -> list[str]:
    """The tokens of a chunk, each once: the whole, then its parts."""
    if not chunk.isascii():
        # What composes to letters of other scripts (half-width kana, hangul in parts) is no word.
        normal = unicodedata.normalize("NFKC", _OPTIONAL.sub("", chunk))
        if normal != chunk:
            return list(dict.fromkeys(token for piece in _any_chunk().findall(normal) for token in _words(piece)))
    return _words(chunk)


def _words(chunk: str) -> list[str]:
    chunk = _POSSESSIVE.sub("", chunk)
    pieces = _JOINER.split(chunk)
    whole = chunk if all(piece.isdecimal() for piece in pieces) else "".join(pieces)
    words = [whole[:CHUNK_CODE_POINTS_MAX]]
    if len(chunk) <= CHUNK_CODE_POINTS_MAX and not _ENDING.search(chunk):
        words += _parts(pieces)
    return list(dict.fromkeys(stem(fold(word)) for word in words))


def _parts(pieces: list[str]) -> list[str]:
    """The words inside a chunk; one letter or digit is none."""
    parts = [part for piece in pieces for part in (_PART.findall(piece) if piece.isascii() else [piece])]
    for found in (parts, pieces):
        if len(found) <= PARTS_MAX:
            return [part for part in found if len(part) > 1]
    return []
