"""What a message is worth to a query, from counts alone: BM25 over its fields, one of which is its context.

    S = Σ w·tf over the fields,  field f gives idf·(k1+1)·w·tf/(S + k1·(1 − b + b·words/mean words))

One saturation for all fields, so that what each gives adds up to the score. The context is what the neighbours in the
session say, the nearer the more, and when and by whom the message was said: an answer often stands next to the words of
the question, and that is worth more than any other refinement. A message is as long as all that counts for it. When and
by whom alone matches nothing: a year would find all that was ever said in it.
"""

from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import NamedTuple

from convmem.messages.terms import Found

K1, B = 0.9, 0.4
WEIGHTS: Mapping[str, float] = {"content": 1.0, "summary": 1.5, "tags": 2.0, "context": 1.0}
# How much a word of the first and of the second neighbour on either side counts; and its length, in terms of that:
# more, so that talkative neighbours do not make up for what the message itself does not say.
NEIGHBOUR_WEIGHTS = (0.5, 0.3)
NEIGHBOUR_LENGTH = 3.0
BESIDE_WEIGHTS = tuple(weight for weight in NEIGHBOUR_WEIGHTS for _ in ("before", "after"))
# A date counts like a word, but of no more than this idf: few texts name a month, much may have been said in it.
CIRCUMSTANCES_IDF_MAX = 3.0


def idf(documents: float, frequency: float) -> float:
    """How much a term says that so many of all documents hold; more than 0."""
    return log(1 + (max(documents - frequency, 0) + 0.5) / (frequency + 0.5))


class Said(NamedTuple):
    """The query's terms in one message: in its fields, in its neighbours' contents (the first before and after it, the
    second …; None where there is none), and which terms say when or by whom it was said.
    """

    content: Found
    summary: Found
    tags: Found
    beside: Sequence[Found | None]
    circumstances: Iterable[int]


class Scoring:
    """How messages are scored by one query: the idf of each term, and the mean length of a message in words."""

    def __init__(self, idfs: Sequence[float], mean_words: float) -> None:
        self._idfs = idfs
        # In the mean, of a message with all its neighbours.
        self._words = max(1.0, mean_words) * (1 + NEIGHBOUR_LENGTH * sum(BESIDE_WEIGHTS))

    def scores(self, said: Said) -> dict[str, float] | None:
        """What each field gives; None if nothing matches."""
        words: float = said.content.words + said.summary.words + said.tags.words
        context: dict[int, float] = {}
        for neighbour, weight in zip(said.beside, BESIDE_WEIGHTS, strict=True):
            if neighbour is not None and weight:
                words += NEIGHBOUR_LENGTH * weight * neighbour.words
                add(context, neighbour.counts, weight)
        fields = {
            "content": said.content.counts,
            "summary": said.summary.counts,
            "tags": said.tags.counts,
            "context": context,
        }
        if not any(fields.values()):
            return None
        for place in said.circumstances:
            context[place] = context.get(place, 0.0) + min(1.0, CIRCUMSTANCES_IDF_MAX / self._idfs[place])
        total: dict[int, float] = {}
        for name, counts in fields.items():
            add(total, counts, WEIGHTS[name])
        length = K1 * (1 - B + B * words / self._words)
        worth = {place: self._idfs[place] * (K1 + 1) / (count + length) for place, count in total.items()}
        return {
            name: WEIGHTS[name] * sum(worth[place] * count for place, count in counts.items()) if counts else 0.0
            for name, counts in fields.items()
        }


def add(total: dict[int, float], counts: Mapping[int, float], weight: float = 1.0) -> None:
    """Add counts to others, each by so much."""
    for place, count in counts.items():
        total[place] = total.get(place, 0.0) + weight * count
