"""The search: which ways are gone, in which order, and what is answered.

    with tables        exact (exact.py), then what they do not know yet (scan.py), then by relevance (ranked.py)
    without, or        all messages row by row (scan.py), then by relevance among those that hold the most words
    too far behind

Exact hits go before all others. The watermark of the tables is read once and holds for the whole search: what changes
while it runs has changed after it, and is looked at last. What is answered is read again from its row at the end, so
nothing is shown that is gone. Each step is one visit to a reader; if the tables are lost between two steps, the search
begins again without them.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import apsw

from convmem.domain import Access
from convmem.limits import (
    REPLY_BYTES_DEFAULT,
    REPLY_BYTES_MAX,
    SEARCH_SCAN_BYTES_MAX,
    SEARCH_TAIL_CHANGES_MAX,
    SNIPPET_CODE_POINTS_MAX,
)
from convmem.messages import exact, queries, ranked, replies, scan, search_tables, terms
from convmem.messages.exact import NEWEST
from convmem.messages.inputs import SearchCaptured, SearchMessages
from convmem.messages.matching import FIELDS, Question, excerpt, searched
from convmem.messages.model import Message
from convmem.messages.ranked import Statistics
from convmem.messages.scan import Seen, Wanted
from convmem.messages.scoring import Said, Scoring, idf
from convmem.messages.stems import root
from convmem.messages.terms import Asked, Found, asked, found
from convmem.reply_bytes import reply_bytes

# The last ones for the domain of memory, which looks for its own records in the same way.
__all__ = ("Asked", "Found", "Said", "Scoring", "SearchCaptured", "asked", "found", "idf", "root", "search")

# A message that matches by its context alone answers a question; whoever looks for a word or two wants to see it.
CONTEXT_ALONE_TERMS_MIN = 2


@dataclass
class Way:
    """What was done so far: the ways that were gone, and what they found."""

    path: list[str] = field(default_factory=list)
    hits: dict[int, exact.Hit] = field(default_factory=dict)
    seen: Seen = field(default_factory=Seen)
    is_complete: bool = True
    lag: int | None = None

    def take(self, hits: Iterable[exact.Hit]) -> None:
        """Note exact hits; a message that changed meanwhile may come twice."""
        self.hits |= {hit.sequence: hit for hit in hits}

    def best_exact(self, wanted: Wanted) -> list[exact.Hit]:
        """The best of the newest exact hits, as many as are asked for."""
        newest = sorted(self.hits.values(), key=lambda hit: hit.sequence, reverse=True)[: wanted.exact_max]
        return sorted(newest, reverse=True)[: wanted.ask.limit]


async def search(access: Access, ask: SearchMessages) -> dict[str, Any]:
    """{results[], path, complete, index_lag?, truncated?}; `complete` is false if not all could be looked at, and then
    `index_lag` says how many changes the tables of search are behind, if there are any.
    """
    asked = None if ask.match == "exact" else terms.asked(ask.query)
    facts = await _searched(access, ask, asked)
    if asked and not facts["results"] and (everything := terms.asked(ask.query, is_whole=True)).terms != asked.terms:
        # Words that say little are better than nothing.
        return await _searched(access, ask, everything)
    return facts


async def _searched(access: Access, ask: SearchMessages, asked: Asked | None) -> dict[str, Any]:
    wanted = Wanted(ask, Question(ask.query), asked if asked and asked.terms else None)
    position = await access.search(_position)
    if position is not None and position[1] <= SEARCH_TAIL_CHANGES_MAX:
        facts = await _by_tables(access, wanted, *position)
        if facts is not None:
            return facts
    return await _by_rows(access, wanted, None if position is None else position[1])


def _position(connection: apsw.Connection) -> tuple[int, int]:
    """The watermark of the tables, and how many changes they are behind."""
    watermark = search_tables.read_watermark(connection, "search")
    return watermark, search_tables.lag(connection, watermark)


async def _by_tables(access: Access, wanted: Wanted, watermark: int, lag: int) -> dict[str, Any] | None:
    """What the search answers; None if the tables were lost on the way, or rows are the shorter way."""
    way = Way(lag=lag)
    if wanted.is_exact:
        before = NEWEST
        rest = "tables"
        while rest == "tables":
            left = wanted.exact_max - len(way.hits)
            found = await access.search(exact.find, wanted.ask, wanted.question, watermark, left, before)
            if found is None or found.rest == "rows":
                return None
            way.take(found.hits)
            before, rest = found.before, found.rest
        way.path.append("index")
    # Also if the tables are behind by nothing: what was changed since the watermark was read belongs to it.
    seen: Seen = await access.read(scan.tail, wanted, watermark)
    way.take(seen.exact)
    way.seen, way.is_complete = seen, seen.is_done
    if lag:
        way.path.append("tail")
    if wanted.asked and len(way.hits) < wanted.ask.limit:
        way.path.append("ranked")
        return await access.search(_ranked_by_tables, wanted, way)
    return await access.read(_answer, wanted, way, [])


async def _by_rows(access: Access, wanted: Wanted, lag: int | None) -> dict[str, Any]:
    seen, way = Seen(), Way(path=["scan"], lag=lag)
    while not seen.is_done and seen.scanned_bytes < SEARCH_SCAN_BYTES_MAX:
        await access.read(scan.slice_of_all, wanted, seen)
    way.take(seen.exact)
    way.seen, way.is_complete = seen, seen.is_done
    facts: dict[str, Any]
    if wanted.asked and len(way.hits) < wanted.ask.limit:
        way.path.append("ranked")
        facts = await access.read(_ranked_by_rows, wanted, way)
    else:
        facts = await access.read(_answer, wanted, way, [])
    return facts


def _ranked_by_tables(connection: apsw.Connection, wanted: Wanted, way: Way) -> dict[str, Any] | None:
    """What the search answers; None if the tables passed over messages that may fill the answer."""
    assert wanted.asked is not None
    statistics = ranked.statistics(connection, wanted.asked)
    found = ranked.candidates(connection, wanted.ask, wanted.asked, statistics)
    among = {*found.sequences, *way.seen.sequences}
    facts = _ranked(connection, wanted, way, _with_seen(statistics, way.seen), among)
    return facts if found.is_sure or len(facts["results"]) == wanted.ask.limit else None


def _ranked_by_rows(connection: apsw.Connection, wanted: Wanted, way: Way) -> dict[str, Any]:
    assert wanted.asked is not None
    nothing = Statistics(0, 0.0, (0,) * len(wanted.asked.terms))
    return _ranked(connection, wanted, way, _with_seen(nothing, way.seen), set(way.seen.sequences))


def _with_seen(statistics: Statistics, seen: Seen) -> Statistics:
    """What the tables know, and what was counted row by row: of rows that hold no term only that they are there."""
    with_terms = seen.words["rows"]
    documents, words, frequencies = statistics
    words = (words * documents + seen.words["words"]) / max(1, documents + with_terms)
    frequencies = tuple(count + seen.frequencies[place] for place, count in enumerate(frequencies))
    return Statistics(documents + max(seen.rows, with_terms), words, frequencies)


def _ranked(
    connection: apsw.Connection, wanted: Wanted, way: Way, statistics: Statistics, candidates: set[int]
) -> dict[str, Any]:
    assert wanted.asked is not None
    candidates |= set(ranked.around(connection, way.seen.sequences))
    others = sorted(candidates - way.hits.keys())
    hits = ranked.rescore(connection, wanted.ask, wanted.asked, statistics, others, len(others))
    if way.hits or len(wanted.asked.terms) < CONTEXT_ALONE_TERMS_MIN:
        hits = [hit for hit in hits if any(hit.scores[name] for name in FIELDS)]
    return _answer(connection, wanted, way, hits[: wanted.ask.limit - len(way.hits)])


def _answer(connection: apsw.Connection, wanted: Wanted, way: Way, hits: Sequence[ranked.Hit]) -> dict[str, Any]:
    """The best that were found and are still there, as facts."""
    ask = wanted.ask
    is_default = not ask.model_fields_set & {"limit", "context_before", "context_after"}
    budget = replies.Budget(REPLY_BYTES_DEFAULT if is_default else REPLY_BYTES_MAX)
    scored: list[tuple[int, ranked.Hit | None]] = [(hit.sequence, None) for hit in way.best_exact(wanted)]
    scored += [(hit.sequence, hit) for hit in hits]
    about: dict[str, Any] = {"path": "+".join(way.path), "complete": way.is_complete}
    if not way.is_complete and way.lag is not None:
        about["index_lag"] = way.lag
    shown: list[dict[str, Any]] = []
    for place, (sequence, hit) in enumerate(scored):
        message = next(queries.read_messages(connection, "WHERE sequence = ?", (sequence,)), None)
        # Gone or changed since it was found.
        if message is None or not (scores := _scores(connection, wanted, message, hit)):
            continue
        facts = _fit(budget, _result(connection, wanted, message) | scores, len(scored) - place)
        if facts is None:
            return {"results": shown, "truncated": True} | about
        shown.append(facts)
    return {"results": shown} | about


def _fit(budget: replies.Budget, facts: dict[str, Any], still_to_come: int) -> dict[str, Any] | None:
    """The result; with less metadata if it would take more than its share from those behind it."""
    share = budget.left // still_to_come
    for form in (facts, *replies.without_metadata(facts)):
        if reply_bytes(form) <= share and budget.take(form):
            return form
    return form if budget.take(form) else None


def _result(connection: apsw.Connection, wanted: Wanted, message: Message) -> dict[str, Any]:
    ask = wanted.ask
    cut = excerpt(message.content, wanted.question, wanted.asked)
    shown = {"snippet": cut.text, "snippet_start": cut.start, "match_ranges": [list(found) for found in cut.ranges]}
    facts: dict[str, Any] = {}
    for name, value in message.facts().items():
        facts |= shown | {"total_bytes": message.content_bytes} if name == "content" else {name: value}
    if ask.context_before or ask.context_after:
        before, after = queries.neighbours(connection, message, before=ask.context_before, after=ask.context_after)
        facts["before"] = [_neighbour(other) for other in before[::-1]]
        facts["after"] = [_neighbour(other) for other in after]
    return facts


def _neighbour(message: Message) -> dict[str, Any]:
    names = ("message_id", "session_id", "timestamp", "role")
    return {name: getattr(message, name) for name in names} | replies.brief(message, SNIPPET_CODE_POINTS_MAX)


def _scores(connection: apsw.Connection, wanted: Wanted, message: Message, hit: ranked.Hit | None) -> dict[str, Any]:
    """Which fields matched, and what each gives to the score; empty if the message holds the query no more."""
    scores = dict.fromkeys((*FIELDS, "context"), 0.0)
    if hit is None:
        metadata = message.metadata
        held = wanted.question.held(searched(message.content, None, metadata.summary, metadata.tags))
        scores |= dict.fromkeys(held, 1.0)
    else:
        scores |= hit.scores
    matched = [name for name, score in scores.items() if score]
    if not matched:
        return {}
    facts = {"score": sum(scores.values()), "scores": scores, "matched_fields": matched, "exact": hit is None}
    if hit is not None and hit.neighbours:
        facts["matched_neighbours"] = [
            other.message_id
            for sequence in hit.neighbours
            for other in queries.read_messages(connection, "WHERE sequence = ?", (sequence,))
        ]
    return facts
