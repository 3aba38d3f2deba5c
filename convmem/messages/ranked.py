"""Messages by relevance: which of them may be the best, and the best of those.

`candidates` asks the tables of search. What a term costs there is how many messages hold it, so the rarest terms
choose, as many as the budget bears: a message's promise is what its terms say together, less if it is long. The others
bring in the newest messages that hold (nearly) all terms. Neighbours of what promises most may match by their context
(scoring.py) and are candidates as well. `rescore` trusts nobody: it reads the rows, looks whether they are there and
pass the filters, and counts the terms itself; so stale tables mislead nobody, and searches without tables use it too.

Rejected: bm25() of SQLite (a common word in a million messages takes a second; its cost is that of all places of all
terms, so it takes five times as long for logs, and chooses no better); feedback from the best hits, pairs of words, and
fusing ranks (no gain).
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from typing import Any, NamedTuple

import apsw

from convmem.limits import (
    SEARCH_BEST_ROWS,
    SEARCH_BEST_ROWS_WITH_NEIGHBOURS,
    SEARCH_FREQUENCY_COUNTED_MAX,
    SEARCH_NEARLY_ALL_ROWS,
    SEARCH_POSTINGS_MAX,
    SEARCH_RANKED_CODE_POINTS_MAX,
)
from convmem.messages import terms
from convmem.messages.filters import selection, tokens_asked
from convmem.messages.inputs import SearchMessages
from convmem.messages.model import split_tags
from convmem.messages.scoring import K1, NEIGHBOUR_WEIGHTS, B, Said, Scoring, add, idf
from convmem.messages.search_tables import newest, quoted
from convmem.messages.terms import Asked, Found
from convmem.text import fold

# Filters that no token stands for.
UNTOLD = ("tag", "min_importance", "since", "until")
# So many promising messages are compared by length for each that is chosen; a term in a summary or tag says more.
PROMISING = 4
LABELS_SHARE = 0.7
CHOOSING_TERMS_MAX, NEARLY_ALL_TERMS_MAX = 12, 10
# How much of a text is read where there is too much to be read.
LONG_TEXT_CODE_POINTS_MAX = 8_192


def _beside(before: bool, steps: int) -> str:
    """SQL for the message so many steps before or after `m` in its session."""
    sign, order = ("<", "DESC") if before else (">", "ASC")
    return (
        f"(SELECT b.sequence FROM messages_message AS b WHERE b.session_id = m.session_id"
        f" AND b.sequence {sign} m.sequence ORDER BY b.sequence {order} LIMIT 1 OFFSET {steps - 1})"
    )


# The sequences beside `m`: the first before and after it, the second …
BESIDE = ", ".join(_beside(before, step + 1) for step in range(len(NEIGHBOUR_WEIGHTS)) for before in (True, False))
LISTED = "FROM json_each(:sequences) AS j CROSS JOIN messages_message AS m ON m.sequence = j.value"


class Statistics(NamedTuple):
    """What is known of all messages: how many, how many words they have in the mean (all fields together), and how many
    of them hold each term of the query in their text (terms.Asked says of which nobody knows). Estimates will do.
    """

    documents: int
    words: float
    frequencies: tuple[int, ...]


class Hit(NamedTuple):
    """A message that matches, and why: what each field gives to the score, and the neighbours that hold terms."""

    sequence: int
    importance: int
    scores: dict[str, float]
    neighbours: tuple[int, ...]

    @property
    def score(self) -> float:
        """The sum of the scores, exactly."""
        return sum(self.scores.values())


def statistics(connection: apsw.Connection, asked: Asked) -> Statistics:
    """What the tables of search know; how often a common term occurs is estimated from its newest messages."""
    documents, words = connection.execute(
        "SELECT documents, content_words + summary_words + tags_words FROM search.messages_state"
    ).fetchone() or (0, 0)
    frequencies = [0] * len(asked.terms)
    for place, term in enumerate(asked.terms[: asked.letters.start]):
        frequencies[place] = min(_frequency(connection, f"{{content summary tags}} : {quoted(term)}"), documents)
    return Statistics(documents, words / max(1, documents), tuple(frequencies))


def _frequency(connection: apsw.Connection, match: str) -> int:
    """In how many messages something stands; estimated from the newest if it is in many."""
    count, least, _ = newest(connection, "messages_word", match, SEARCH_FREQUENCY_COUNTED_MAX)
    if count < SEARCH_FREQUENCY_COUNTED_MAX:
        return count
    first, last = _ends(connection)
    return count * (last - first + 1) // max(1, last - least + 1)


def _ends(connection: apsw.Connection) -> tuple[int, int]:
    """The first and the last sequence of a message; 0 if there is none."""
    query = "SELECT (SELECT min(sequence) FROM messages_message), (SELECT max(sequence) FROM messages_message)"
    first, last = connection.execute(query).fetchone() or (None, None)
    return int(first or 0), int(last or 0)


class Candidates(NamedTuple):
    """The sequences of messages among which the best are, in the order of their promise; some may be gone. `is_sure` is
    false if messages that pass the filters may have been passed over: no token says which these are, and the terms
    stand in too many to look at all.
    """

    sequences: list[int]
    is_sure: bool


def candidates(connection: apsw.Connection, ask: SearchMessages, asked: Asked, statistics: Statistics) -> Candidates:
    """The messages that promise most; the tables are asked for no more than the budget bears."""
    passing = min((_frequency(connection, quoted(token)) for token in tokens_asked(ask)), default=statistics.documents)
    by_rarity = sorted(
        (min(frequency, passing), place) for place, frequency in enumerate(statistics.frequencies) if frequency
    )
    present = [asked.terms[place] for _, place in by_rarity]
    rare: dict[str, float] = {}
    postings = 0
    for (frequency, _), term in zip(by_rarity, present, strict=True):
        postings += frequency
        if postings <= SEARCH_POSTINGS_MAX and len(rare) < CHOOSING_TERMS_MAX:
            rare[term] = idf(statistics.documents, statistics.frequencies[asked.places[term]])
    looked_up = _Lookup(connection, ask)
    found = dict.fromkeys(looked_up.best(rare, max(SEARCH_BEST_ROWS, ask.limit)))
    if len(rare) < len(present):
        found |= dict.fromkeys(looked_up.newest(present, by_rarity[0][0]))
        if 2 < len(present) <= NEARLY_ALL_TERMS_MAX:
            for left_out in range(len(present)):
                kept = present[:left_out] + present[left_out + 1 :]
                found |= dict.fromkeys(looked_up.newest(kept, by_rarity[left_out == 0][0]))
        if not rare:
            found |= dict.fromkeys(looked_up.newest(present[:1], by_rarity[0][0]))
    is_sure = postings <= SEARCH_POSTINGS_MAX or not _has_untold(ask)
    found |= dict.fromkeys(around(connection, list(found)[:SEARCH_BEST_ROWS_WITH_NEIGHBOURS]))
    return Candidates(list(found), is_sure)


def _has_untold(ask: SearchMessages) -> bool:
    return any(getattr(ask, name) is not None for name in UNTOLD)


class _Lookup:
    """The word table, asked for messages that pass the filters."""

    def __init__(self, connection: apsw.Connection, ask: SearchMessages) -> None:
        self._connection = connection
        self._filters = [quoted(token) for token in tokens_asked(ask)]
        self._tables = "search.messages_word"
        self._conditions, self._bindings = "1", dict[str, Any]()
        if _has_untold(ask):
            self._tables += " CROSS JOIN messages_message AS m ON m.sequence = messages_word.rowid"
            self._conditions, self._bindings = selection(ask)
        self._first, self._last = _ends(connection)

    def best(self, terms: dict[str, float], rows_max: int) -> list[int]:
        """Those that promise most, of all that hold one of these terms, which say so much."""
        promises: dict[int, float] = {}
        for term, share in terms.items():
            for columns, part in (("", share), ("{summary tags} : ", share * LABELS_SHARE)):
                for (sequence,) in self._rows([columns + quoted(term)], ""):
                    promises[sequence] = promises.get(sequence, 0.0) + part
        promising = nlargest(PROMISING * rows_max, zip(promises.values(), promises, strict=True))
        listed = json.dumps([sequence for _, sequence in promising])
        rows: Any = self._connection.execute(f"SELECT m.sequence, m.content_bytes {LISTED}", {"sequences": listed})
        lengths = dict[int, int](rows)
        mean = max(1, sum(lengths.values())) / max(1, len(lengths))
        scored = [
            (promise / (1 + K1 * (1 - B + B * lengths[sequence] / mean)), sequence)
            for promise, sequence in promising
            if sequence in lengths
        ]
        return [sequence for _, sequence in sorted(scored, reverse=True)[:rows_max]]

    def newest(self, all_of: Sequence[str], frequency: int) -> Iterator[int]:
        """The newest that hold all of these terms, the first of which is the rarest and stands in so many messages."""
        span = (self._last - self._first) * SEARCH_POSTINGS_MAX // max(frequency, SEARCH_POSTINGS_MAX)
        limits = f"AND messages_word.rowid >= {self._last - span - 1} ORDER BY messages_word.rowid DESC"
        return (at for (at,) in self._rows(map(quoted, all_of), f"{limits} LIMIT {SEARCH_NEARLY_ALL_ROWS}"))

    def _rows(self, all_of: Iterable[str], rest: str) -> Iterator[Any]:
        return self._connection.execute(
            f"SELECT messages_word.rowid FROM {self._tables} WHERE messages_word MATCH :match"
            f" AND {self._conditions} {rest}",
            self._bindings | {"match": " AND ".join([*all_of, *self._filters])},
        )


def around(connection: apsw.Connection, sequences: Sequence[int]) -> Iterator[int]:
    """The sequences beside these, by the order of these."""
    rows = connection.execute(f"SELECT {BESIDE} {LISTED}", {"sequences": json.dumps(sequences)})
    return (sequence for row in rows for sequence in row if sequence is not None)


class _Row(NamedTuple):
    """A candidate as it stands, but for its text."""

    sequence: int
    importance: int
    summary: str | None
    tags: str
    timestamp: int
    role: str
    beside: tuple[int | None, ...]


def rescore(
    connection: apsw.Connection,
    ask: SearchMessages,
    asked: Asked,
    statistics: Statistics,
    sequences: Sequence[int],
    limit: int,
) -> list[Hit]:
    """The best of these messages that are there, pass the filters and match; at most `limit`, best first."""
    rows, found = _read(connection, ask, asked, sequences)
    scoring = Scoring(_idfs(asked, statistics, found), statistics.words)
    hits = []
    for row in rows:
        circumstances = terms.circumstances(row.timestamp, row.role)
        beside = [None if sequence is None else found.get(sequence) for sequence in row.beside]
        said = Said(
            content=found[row.sequence],
            summary=_counted(asked, [row.summary or ""]),
            tags=_counted(asked, split_tags(row.tags)),
            beside=beside,
            circumstances=[asked.places[token] for token in circumstances if token in asked.places],
        )
        if (scores := scoring.scores(said)) is not None:
            matched = [at for at, other in zip(row.beside, beside, strict=True) if at and other and other.counts]
            hits.append(Hit(row.sequence, row.importance, scores, tuple(sorted(matched))))
    hits.sort(key=lambda hit: (hit.score, hit.importance, hit.sequence), reverse=True)
    return hits[:limit]


def _read(
    connection: apsw.Connection, ask: SearchMessages, asked: Asked, sequences: Sequence[int]
) -> tuple[list[_Row], dict[int, Found]]:
    """The rows of those that pass the filters, and the terms in the contents of these and of their neighbours."""
    filters = selection(ask)
    rows: list[_Row] = []
    found: dict[int, Found] = {}
    left = SEARCH_RANKED_CODE_POINTS_MAX
    for content, folded, sequence, importance, summary, tags, timestamp, role, *beside in connection.execute(
        "SELECT content, coalesce(folded_content, content), m.sequence, importance, summary, tags, timestamp, role,"
        f" {BESIDE} {LISTED} WHERE {filters.conditions}",
        filters.bindings | {"sequences": json.dumps(sequences)},
    ):
        rows.append(_Row(sequence, importance, summary, tags, timestamp, role, tuple(beside)))
        read = None if len(content) <= left else LONG_TEXT_CODE_POINTS_MAX
        found[sequence] = terms.found(asked, content[:read], folded[:read])
        left = max(0, left - len(content))
    unread = {other for row in rows for other in row.beside if other is not None} - found.keys()
    for sequence, content, folded in connection.execute(
        f"SELECT m.sequence, content, coalesce(folded_content, content) {LISTED}",
        {"sequences": json.dumps(sorted(unread))},
    ):
        read = LONG_TEXT_CODE_POINTS_MAX
        found[sequence] = terms.found(asked, content[:read], folded[:read])
    return rows, found


def _counted(asked: Asked, labels: Iterable[str]) -> Found:
    """The terms in a summary or in tags."""
    counts: dict[int, float] = {}
    words = 0
    for label in filter(None, labels):
        held = terms.found(asked, label, fold(label))
        add(counts, held.counts)
        words += held.words
    return Found(counts, words)


def _idfs(asked: Asked, statistics: Statistics, found: Mapping[int, Found]) -> list[float]:
    """What each term says. Letters that nobody has counted are as frequent anywhere as among what was found."""
    frequencies = list[float](statistics.frequencies)
    for place in asked.letters:
        held = sum(place in one.counts for one in found.values())
        frequencies[place] = statistics.documents * (held + 0.5) / (len(found) + 1)
    return [idf(statistics.documents, max(1, frequency)) for frequency in frequencies]
