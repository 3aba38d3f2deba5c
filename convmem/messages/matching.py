"""Whether and where a text holds what is looked for: pure, no SQL.

Exact: the whole query as a substring, folded (text.py), or as it stands: the start of a composed letter (e of e+´) is
in the text although folding has joined it away. By words: terms.py.

The query is plain text. Nothing in it is an operator, so nothing in it can be a mistake.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import NamedTuple

from convmem.limits import MATCH_PLACES_MAX, MATCH_RANGES_MAX, SNIPPET_CODE_POINTS_MAX
from convmem.messages import terms
from convmem.messages.terms import Asked
from convmem.text import Folded, fold

FIELDS = ("content", "summary", "tags")
BEFORE_MATCH_CODE_POINTS = 60


class Field(NamedTuple):
    """One text of a message, as it stands and folded."""

    name: str
    text: str
    folded: str


class Question:
    """A query that is looked for as it is, prepared once for many texts."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.folded = fold(query)

    def held(self, fields: Iterable[Field]) -> tuple[str, ...]:
        """The names of the fields that hold the whole query."""
        # The second half: a part of something that folding has joined.
        names = (name for name, text, folded in fields if self.folded in folded or self.query in text)
        return tuple(dict.fromkeys(names))


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


def excerpt(content: str, question: Question, asked: Asked | None) -> Excerpt:
    """At most SNIPPET_CODE_POINTS_MAX code points around the best match: the query if it is there, else most words."""
    folded = Folded(content)
    places = _first(_places(question.folded, folded.text))
    if places:
        ranges = [folded.original_range(*place) for place in places]
    elif question.query in content:
        ranges = _first(_places(question.query, content))
    else:
        ranges = _densest(asked, content) if asked else []
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
    return list(islice(places, MATCH_RANGES_MAX))


def _densest(asked: Asked, content: str) -> list[tuple[int, int]]:
    """Places of terms within one snippet's length that hold the most distinct terms; the earliest such."""
    found = list(islice(terms.ranges(asked, content), MATCH_PLACES_MAX))
    best: list[tuple[int, int, int]] = []
    best_terms = 0
    for first, (start, _, _) in enumerate(found):
        near = [place for place in found[first : first + MATCH_RANGES_MAX] if place[1] <= start + _REACH]
        count = len({place for _, _, place in near})
        if count > best_terms:
            best, best_terms = near, count
    return _apart([(start, end) for start, end, _ in best])


_REACH = SNIPPET_CODE_POINTS_MAX - BEFORE_MATCH_CODE_POINTS


def _apart(places: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same places, overlapping or adjacent ones as one."""
    apart: list[tuple[int, int]] = []
    for start, end in places:
        if apart and start <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(end, apart[-1][1]))
        else:
            apart.append((start, end))
    return apart
