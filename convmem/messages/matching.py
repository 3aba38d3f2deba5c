"""Whether and where a text holds what is looked for: pure, no SQL.

Exact: the whole query as a substring, folded (text.py), or as it stands: the start of a composed letter (e of e+´) is
in the text although folding has joined it away. By words: the query cut at white space; in scripts that put spaces
between words a word is found where a word begins, a short one only as a whole word ("cat" is not in "category"); in
all others (Han, kana, hangul, Thai, Lao, Khmer, Myanmar …) anywhere.

The query is plain text. Nothing in it is an operator, so nothing in it can be a mistake.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from convmem.limits import MATCH_RANGES_MAX, SEARCH_WORDS_MAX, SNIPPET_CODE_POINTS_MAX
from convmem.text import Folded, fold

FIELDS = ("content", "summary", "tags")
# Letters and digits of scripts that put spaces between words; not of those that do not, nor of hangul, where endings
# are written at the word.
IS_SPACED = re.compile(
    r"[^\W_\u0e00-\u109f\u1100-\u11ff\u1780-\u17ff\u2e80-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff]"
).match
SHORT_WORD_CODE_POINTS = 3
BEFORE_MATCH_CODE_POINTS = 60


class Word(NamedTuple):
    """One word of a query, folded, and at which ends no letter may continue it."""

    text: str
    pattern: re.Pattern[str]
    is_bound_before: bool
    is_bound_after: bool

    def is_in(self, folded: str) -> bool:
        """True if a folded text holds this word."""
        found = self.pattern.search(folded)
        if found is None:
            return False
        around = folded[max(0, found.start() - 1) : found.end() + 1]
        return (around.isascii() and self.text.isascii()) or next(self.places(folded), None) is not None

    def places(self, folded: str) -> Iterator[tuple[int, int]]:
        """Where a folded text holds this word."""
        for found in self.pattern.finditer(folded):
            start, end = found.span()
            if self.is_bound_before and start and IS_SPACED(folded[start - 1]):
                continue
            if self.is_bound_after and end < len(folded) and IS_SPACED(folded[end]):
                continue
            yield start, end


def _word(text: str) -> Word:
    # The pattern sorts out what stands inside a plain Latin word, at the speed of C; few are left to be looked at. It
    # begins with plain letters (twenty times as fast) and so asks behind the word for what may not stand before it.
    literal = re.escape(text)
    is_bound_before = bool(IS_SPACED(text[0]))
    is_bound_after = len(text) <= SHORT_WORD_CODE_POINTS and bool(IS_SPACED(text[-1]))
    after = "(?![a-z0-9])" if is_bound_after else ""
    before = f"(?<![a-z0-9]{literal})" if is_bound_before else ""
    return Word(text, re.compile(literal + after + before), is_bound_before, is_bound_after)


class Field(NamedTuple):
    """One text of a message, as it stands and folded."""

    name: str
    text: str
    folded: str


class Match(NamedTuple):
    """Which fields hold the whole query, and which of its words each field holds."""

    exact: tuple[str, ...]
    words: dict[str, set[str]]

    @property
    def word_count(self) -> int:
        """How many distinct words were found."""
        return len(set().union(*self.words.values()))


NO_MATCH = Match((), {})


class Question:
    """What is looked for, prepared once for many texts.

    `match` is that of search_messages. A query of one word asks nothing by words that the substring does not find.
    """

    def __init__(self, query: str, match: str) -> None:
        self.query = query
        self.folded = fold(query)
        self.by_words_only = match == "any"
        words = [] if match == "exact" else list(dict.fromkeys(self.folded.split()))[:SEARCH_WORDS_MAX]
        self.words = [] if match == "auto" and words == [self.folded] else [_word(text) for text in words]

    @property
    def parts(self) -> list[str]:
        """The folded texts of which every match holds one, unless it holds the query as it stands."""
        words = [word.text for word in self.words]
        return words if self.by_words_only else [self.folded, *words]

    def match(self, fields: Iterable[Field]) -> Match:
        """What of the query some fields hold."""
        exact: list[str] = []
        found: dict[str, set[str]] = {}
        for name, text, folded in fields:
            # The second half: a part of something that folding has joined.
            if self.folded in folded or self.query in text:
                exact.append(name)
            for word in self.words:
                if word.is_in(folded):
                    found.setdefault(name, set()).add(word.text)
        return Match(tuple(dict.fromkeys(exact)), found) if exact or found else NO_MATCH


def searched(content: str, folded_content: str | None, summary: str | None, tags: Sequence[str]) -> list[Field]:
    """The fields of a message that are searched; `folded_content` may be given if it is known."""
    fields = [Field("content", content, fold(content) if folded_content is None else folded_content)]
    if summary:
        fields.append(Field("summary", summary, fold(summary)))
    return fields + [Field("tags", tag, fold(tag)) for tag in tags]


class Excerpt(NamedTuple):
    """A part of a text around what was found. Ranges are [start, end) in code points of the whole text."""

    text: str
    start: int
    ranges: list[tuple[int, int]]


def excerpt(content: str, question: Question) -> Excerpt:
    """At most SNIPPET_CODE_POINTS_MAX code points around the best match: the query if it is there, else most words."""
    folded = Folded(content)
    places = _first(_places(question.folded, folded.text))
    if places:
        ranges = [folded.original_range(*place) for place in places]
    elif question.query in content:
        ranges = _first(_places(question.query, content))
    else:
        ranges = [folded.original_range(*place) for place in _densest(question, folded.text)]
    start = _start(ranges[0], len(content)) if ranges else 0
    end = start + SNIPPET_CODE_POINTS_MAX
    return Excerpt(content[start:end], start, [found for found in ranges if found[0] < end])


def _start(match: tuple[int, int], code_points: int) -> int:
    """Where a snippet begins so that the match, some words before it and as much as possible behind it are shown."""
    before = min(BEFORE_MATCH_CODE_POINTS, max(0, SNIPPET_CODE_POINTS_MAX - (match[1] - match[0])))
    return max(0, min(match[0] - before, code_points - SNIPPET_CODE_POINTS_MAX))


def _places(part: str, text: str) -> Iterator[tuple[int, int]]:
    """Where `part` stands in `text`, one behind the other."""
    at = text.find(part)
    while at >= 0:
        yield at, at + len(part)
        at = text.find(part, at + len(part))


def _first(places: Iterator[tuple[int, int]]) -> list[tuple[int, int]]:
    return [place for place, _ in zip(places, range(MATCH_RANGES_MAX), strict=False)]


def _densest(question: Question, folded: str) -> list[tuple[int, int]]:
    """Places of words within one snippet's length that hold the most distinct words; the earliest such."""
    found = sorted((*place, word.text) for word in question.words for place in _first(word.places(folded)))
    best: list[tuple[int, int, str]] = []
    best_words = 0
    for first, (start, _, _) in enumerate(found):
        near = [place for place in found[first : first + MATCH_RANGES_MAX] if place[1] <= start + _REACH]
        words = len({text for _, _, text in near})
        if words > best_words:
            best, best_words = near, words
    return _apart([(start, end) for start, end, _ in best])


_REACH = SNIPPET_CODE_POINTS_MAX - BEFORE_MATCH_CODE_POINTS


def _apart(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same places, overlapping ones as one."""
    apart: list[tuple[int, int]] = []
    for start, end in places:
        if apart and start < apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart
