"""Preferences and lessons by relevance to a topic: pure, from folded texts that are read anyway.

There are thousands of them at most, so each is looked at: whether it holds the topic as it stands, or any of its terms.
The terms are those of the search of messages; a word of the topic that stands inside another word (`get` in
`getUserName`, folded by then) counts half. What may match is found by looking for the beginnings of the terms, which
takes a hundredth of cutting a text into words; only the most promising of each kind are cut. A text that holds a word
of the topic as it is written promises more than one that only begins like it (`tesla` begins like `test`).

Best first: the project's own, then what holds the whole topic, then by the scoring of the search; the newest of equals.

Rejected: tables of search for these few (a watermark to follow, and a search without them all the same).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from heapq import nlargest
from typing import NamedTuple

from convmem.limits import RECALL_ROOTS_FIRST, RECALL_SCORED_MAX
from convmem.memory.queries import Searched
from convmem.messages.search import Asked, Found, Said, Scoring, asked, found, idf, root
from convmem.text import fold

# What a term counts that stands inside another word.
INSIDE_WEIGHT = 0.5
# Records have no summary and no neighbours; the key of a preference counts like a tag.
KINDS = ("preference", "lesson")
# No root is empty.
WHOLE = ""
NOTHING, ALONE = Found({}, 0), (None, None, None, None)
# Marks of Hebrew and Arabic that may be written or left out, and the joiner: terms are without them.
_MARKED = re.compile("[\u0590-\u06ff]").search
_OPTIONAL = re.compile("[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200d]+")
# From Thai on few scripts have spaces between words, and so no marks inside them.
_UNSPACED = "\u0e00"
# What may stand inside a word, and is left out of its term.
_JOINERS = ("'", "\u2019", "\u200c", "_", ".", "-")
# Before a word that is looked for as it is written: no root begins so.
_AS_WRITTEN = "\0"
_EDGES = re.compile(r"^\W+|\W+$")


class Topic:
    """What is looked for, prepared once for many texts."""

    def __init__(self, text: str, *, is_whole: bool = False) -> None:
        self.folded = fold(text).strip()
        self.asked: Asked = asked(text, is_whole=is_whole)
        # The longest say most, so they are looked for first.
        self.roots = sorted(set(map(_beginning, self.asked.terms)), key=_longest_first)
        self._has_marks = _MARKED(self.folded) is not None
        self.words = self._significant_words()
        written = sorted(self.words, key=_longest_first)[:RECALL_ROOTS_FIRST]
        # Where words stand without spaces the ends of one cannot be told.
        self._written = [(word, re.compile(rf"(?<![a-z0-9]){re.escape(word)}(?![a-z0-9])").search) for word in written]
        self.looked_for = (*self.roots, *(_AS_WRITTEN + word for word in written))

    def _significant_words(self) -> dict[str, tuple[int, ...]]:
        """The words of the topic as it is written, and the places of the terms that each has become."""
        words = (_EDGES.sub("", word) for word in self.folded.split())
        places = {
            word: tuple(place for place, term in enumerate(self.asked.terms) if word.startswith(_beginning(term)))
            for word in words
            if word
        }
        return {word: found for word, found in places.items() if found}

    def held_by(self, rows: Iterable[Searched]) -> list[tuple[int, Searched]]:
        """The rows that may match, each with what it holds of `looked_for` as bits; the bit behind those says that it
        holds the topic as it stands. If the first roots are in enough rows, the others are not looked for.
        """
        held = self._held_by(rows, self.roots[:RECALL_ROOTS_FIRST])
        if len(held) < RECALL_SCORED_MAX and len(self.roots) > RECALL_ROOTS_FIRST:
            return self._held_by(rows, self.roots)
        return held

    def _held_by(self, rows: Iterable[Searched], roots: Sequence[str]) -> list[tuple[int, Searched]]:
        bits_of_roots = [(1 << place, beginning) for place, beginning in enumerate(roots)]
        bits_of_joined = [(bit, beginning) for bit, beginning in bits_of_roots if beginning < _UNSPACED]
        bit_of_all = 1 << len(self.looked_for)
        held = []
        for row in rows:
            folded = row.folded
            bits = _bits(bits_of_roots, folded)
            if not bits and bits_of_joined:
                bits = _bits(bits_of_joined, self._bare(folded))
            if self.folded and self.folded in folded:
                bits |= bit_of_all
            if bits:
                held.append((bits | self._bits_as_written(folded), row))
        return held

    def _bits_as_written(self, folded: str) -> int:
        bits = 0
        for place, (word, search) in enumerate(self._written, len(self.roots)):
            # Looking for the bare text is quicker than the pattern, and mostly enough to say no.
            if word in folded and search(folded):
                bits |= 1 << place
        return bits

    def _bare(self, folded: str) -> str:
        """A text without what its terms are without; empty if it has none of that."""
        bare = folded
        for joiner in _JOINERS:
            bare = bare.replace(joiner, "")
        if self._has_marks and not bare.isascii():
            bare = _OPTIONAL.sub("", bare)
        return "" if bare is folded else bare


def _beginning(term: str) -> str:
    """What every word begins with that has become this term: only plain Latin letters have endings taken off."""
    return root(term) if term.isascii() and term.isalpha() else term


def _longest_first(text: str) -> tuple[int, str]:
    return -len(text), text


def _bits(bits_of_roots: Iterable[tuple[int, str]], folded: str) -> int:
    bits = 0
    for bit, beginning in bits_of_roots:
        if beginning in folded:
            bits |= bit
    return bits


class Hit(NamedTuple):
    """A record that matches: how well. The greatest is the best."""

    is_own: bool
    is_exact: bool
    score: float
    sequence: int


class _Counted(NamedTuple):
    """The terms in one record: in the key of a preference, and in all else."""

    row: Searched
    is_exact: bool
    key: Found
    rest: Found


def ranked(rows: Iterable[Searched], text: str, project: str | None = None) -> dict[str, list[Hit]]:
    """The records that match a topic, best first, by kind.

    With a project, only its own and those of none. Words that say little count if nothing else was found.
    """
    among = [row for row in rows if project is None or row.project in (project, None)]
    topic = Topic(text)
    hits = _ranked(among, topic, project)
    if not any(hits.values()) and (whole := Topic(text, is_whole=True)).asked.terms != topic.asked.terms:
        return _ranked(among, whole, project)
    return hits


def _ranked(rows: Sequence[Searched], topic: Topic, project: str | None) -> dict[str, list[Hit]]:
    held = topic.held_by(rows)
    worths = _worths(len(rows), topic, [bits for bits, _ in held])

    @cache
    def worth(bits: int) -> float:
        return sum(one for place, one in enumerate(worths.values()) if bits >> place & 1)

    chosen: list[Searched] = []
    for kind in KINDS:
        promising = ((row.project == project, worth(bits), row.sequence, row) for bits, row in held if row.kind == kind)
        chosen += [row for *_, row in nlargest(RECALL_SCORED_MAX, promising, key=lambda one: one[:3])]
    counted = [_counted(row, topic) for row in chosen]
    words = sum(one.key.words + one.rest.words for one in counted)
    scoring = Scoring([worths[_beginning(term)] for term in topic.asked.terms], words / max(1, len(counted)))
    hits: dict[str, list[Hit]] = {kind: [] for kind in KINDS}
    for one in counted:
        scores = scoring.scores(Said(one.rest, NOTHING, one.key, ALONE, ()))
        if scores or one.is_exact:
            is_own = project is not None and one.row.project == project
            score = sum(scores.values()) if scores else 0.0
            hits[one.row.kind].append(Hit(is_own, one.is_exact, score, one.row.sequence))
    return {kind: sorted(found, reverse=True) for kind, found in hits.items()}


def _worths(documents: int, topic: Topic, held: Sequence[int]) -> dict[str, float]:
    """What each says that is looked for, by how many texts hold it; and last, under the whole topic, more than all of
    them do.
    """
    frequencies = [0] * len(topic.looked_for)
    for bits, count in Counter(held).items():
        for place in range(len(frequencies)):
            frequencies[place] += count * (bits >> place & 1)
    worths = {one: idf(documents, frequency) for one, frequency in zip(topic.looked_for, frequencies, strict=True)}
    return {**worths, WHOLE: sum(worths.values()) + 1}


def _counted(row: Searched, topic: Topic) -> _Counted:
    key, _, value = row.folded.partition("\0") if row.kind == "preference" else ("", "", row.folded)
    in_key, in_rest = found(topic.asked, key, key) if key else NOTHING, found(topic.asked, value, value)
    inside = {
        places[0]: INSIDE_WEIGHT
        for word, places in topic.words.items()
        if word in row.folded and in_key.counts.keys().isdisjoint(places) and in_rest.counts.keys().isdisjoint(places)
    }
    rest = Found({**in_rest.counts, **inside}, in_rest.words)
    return _Counted(row, bool(topic.folded) and topic.folded in row.folded, in_key, rest)
