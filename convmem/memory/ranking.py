"""Preferences and lessons by relevance to a topic: pure, from folded texts that are read anyway.

There are thousands of them at most, so each is looked at: whether it holds the topic as it stands, or any of its terms.
The terms are those of the search of messages; a word of the topic that stands inside another word (`get` in
`getUserName`, folded by then) counts half. What may match is found by looking for the beginnings of the terms, which
takes a hundredth of cutting a text into words; only the most promising of each kind are cut.

Best first: the project's own, then what holds the whole topic, then by the scoring of the search; the newest of equals.

Rejected: tables of search for these few (a watermark to follow, and a search without them all the same).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from heapq import nlargest
from typing import NamedTuple

from convmem.limits import RECALL_ROOTS_MAX, RECALL_SCORED_MAX
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
_OPTIONAL = re.compile("[\u0591-\u05bd\u05bf-\u05c7\u0610-\u061a\u0640\u064b-\u065f\u0670\u200d]+")
# What may stand inside a word, and is left out of its term.
_JOINERS = ("'", "\u2019", "\u200c", "_", ".", "-")
_EDGES = re.compile(r"^\W+|\W+$")


class Topic:
    """What is looked for, prepared once for many texts."""

    def __init__(self, text: str, *, is_whole: bool = False) -> None:
        self.folded = fold(text).strip()
        self.asked: Asked = asked(text, is_whole=is_whole)
        # The longest say most.
        roots = sorted({root(term) for term in self.asked.terms}, key=lambda beginning: (-len(beginning), beginning))
        self.roots = roots[:RECALL_ROOTS_MAX]
        self._bits_of_roots = [(1 << place, beginning) for place, beginning in enumerate(self.roots)]
        self.words = self._significant_words()

    def _significant_words(self) -> dict[str, tuple[int, ...]]:
        """The words of the topic as it is written, and the places of the terms that each has become."""
        words = (_EDGES.sub("", word) for word in self.folded.split())
        places = {
            word: tuple(place for place, term in enumerate(self.asked.terms) if word.startswith(root(term)))
            for word in words
            if word
        }
        return {word: found for word, found in places.items() if found}

    def held(self, folded: str) -> int:
        """Which roots stand in a text, as bits; the bit behind them says that the topic does as it is."""
        bits = self._bits(folded)
        if not bits and (bare := _without_joiners(folded)) != folded:
            bits = self._bits(bare)
        if self.folded and self.folded in folded:
            bits |= 1 << len(self.roots)
        return bits

    def _bits(self, folded: str) -> int:
        bits = 0
        for bit, beginning in self._bits_of_roots:
            if beginning in folded:
                bits |= bit
        return bits


def _without_joiners(folded: str) -> str:
    for joiner in _JOINERS:
        folded = folded.replace(joiner, "")
    return folded if folded.isascii() else _OPTIONAL.sub("", folded)


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
    held = [(bits, row) for row in rows if (bits := topic.held(row.folded))]
    worths = _worths(len(rows), topic, [bits for bits, _ in held])

    @cache
    def worth(bits: int) -> float:
        return sum(one for place, one in enumerate(worths.values()) if bits >> place & 1)

    chosen: list[Searched] = []
    for kind in KINDS:
        promising = ((row.project == project, worth(bits), row.sequence, row) for bits, row in held if row.kind == kind)
        chosen += [row for *_, row in nlargest(RECALL_SCORED_MAX, promising, key=lambda one: one[:3])]
    counted = [_counted(row, topic) for row in chosen]
    rarest = idf(len(rows), 1)
    words = sum(one.key.words + one.rest.words for one in counted)
    scoring = Scoring([worths.get(root(term), rarest) for term in topic.asked.terms], words / max(1, len(counted)))
    hits: dict[str, list[Hit]] = {kind: [] for kind in KINDS}
    for one in counted:
        scores = scoring.scores(Said(one.rest, NOTHING, one.key, ALONE, ()))
        if scores or one.is_exact:
            is_own = project is not None and one.row.project == project
            score = sum(scores.values()) if scores else 0.0
            hits[one.row.kind].append(Hit(is_own, one.is_exact, score, one.row.sequence))
    return {kind: sorted(found, reverse=True) for kind, found in hits.items()}


def _worths(documents: int, topic: Topic, held: Sequence[int]) -> dict[str, float]:
    """What each root says, by how many texts hold it; and last, under the whole topic, more than all of them do."""
    frequencies = [0] * len(topic.roots)
    for bits, count in Counter(held).items():
        for place in range(len(frequencies)):
            frequencies[place] += count * (bits >> place & 1)
    worths = {one: idf(documents, frequency) for one, frequency in zip(topic.roots, frequencies, strict=True)}
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
