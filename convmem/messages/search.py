"""Search by scan: newest first, slice by slice, every text looked at.

No index can disagree with it: a message is found as soon as it is stored and never after it is gone. SQLite finds the
candidates of a slice (filters, and a substring of what is kept folded), Python decides (matching.py): what the first
lets through, the second may refuse, never the other way round. A slice is one visit to a reader, so that a long search
lets others pass. Exact hits end the scan when there are enough; hits by words are ranked, so all must be seen, and of
each rank only the best are kept.

Scores add up: an exact hit scores 1 for each field that holds the query, a hit by words its share of the query's
words, counted at the first field that holds each. Importance breaks ties, then the greater sequence.
"""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from convmem.domain import Access
from convmem.limits import (
    REPLY_BYTES_DEFAULT,
    REPLY_BYTES_MAX,
    SEARCH_EXACT_NEWEST,
    SEARCH_SCAN_BYTES_MAX,
    SEARCH_SLICE_BYTES,
    SEARCH_SLICE_ROWS,
    SNIPPET_CODE_POINTS_MAX,
)
from convmem.messages import queries, replies
from convmem.messages.inputs import SearchMessages
from convmem.messages.matching import FIELDS, Question, excerpt, searched
from convmem.messages.model import Message, split_tags

NEWEST = 2**63 - 1
# An argument that filters, and its condition. `+` keeps SQLite from an index that does not go by sequence.
FILTERS = {
    "session_id": "session_id = :session_id",
    "project": "+project = :project",
    "role": "+role = :role",
    "kind": "+memory_kind = :kind",
    "tier": "memory_tier = :tier",
    "min_importance": "importance >= :min_importance",
    "since": "timestamp >= :since",
    "until": "timestamp <= :until",
}

# Whether a message may match, `?` being a part of the query. instr counts bytes, so U+0000 is an ordinary character.
FOLDED = "instr(coalesce(folded_content, lower(content)), ?)"
LABELS = "instr(folded_labels, ?)"
AS_IT_STANDS = (
    "(folded_content IS NOT NULL AND instr(content, :query)) OR instr(summary, :query) OR instr(tags, :query)"
)

Rank = tuple[int, int, int]  # fields or words that match, importance, sequence: the greatest is the best


@dataclass
class Found:
    """What a search has seen so far: it goes on below `before`, unless it `is_done`."""

    before: int = NEWEST
    scanned_bytes: int = 0
    is_done: bool = False
    exact: list[Rank] = field(default_factory=list)
    ranked: dict[int, list[Rank]] = field(default_factory=dict)


async def search(access: Access, ask: SearchMessages) -> dict[str, Any]:
    """{results[], path, complete, truncated?}; `complete` is false if the store is larger than a scan may look at."""
    question = Question(ask.query, ask.match)
    found = Found()
    while not found.is_done and found.scanned_bytes < SEARCH_SCAN_BYTES_MAX:
        await access.read(scan, ask, question, found)
    facts: dict[str, Any] = await access.read(results, ask, question, found)
    return facts | {"path": "scan", "complete": found.is_done}


def scan(connection: apsw.Connection, ask: SearchMessages, question: Question, found: Found) -> None:
    """Look at the next slice and note what matches."""
    selection = _selection(ask)
    least = _least_of_slice(connection, selection, found)
    if least is None:
        return
    exact_max = max(SEARCH_EXACT_NEWEST, ask.limit)
    rows = _candidates(connection, selection, question, least=least, before=found.before)
    found.before = least
    for sequence, importance, content, folded, summary, tags in rows:
        if folded is None and not content.isascii():
            folded = content
        match = question.match(searched(content, folded, summary, split_tags(tags)))
        if match.exact and not question.by_words_only:
            found.exact.append((len(match.exact), importance, sequence))
            if len(found.exact) == exact_max:
                found.is_done = True
                return
        elif match.words:
            rank = (match.word_count, importance, sequence)
            _keep(found.ranked.setdefault(match.word_count, []), rank, ask.limit)


class Selection(NamedTuple):
    """The filters of a search in SQL: where from, what goes by sequence, the conditions and their values."""

    source: str
    sequence: str
    conditions: str
    bindings: dict[str, Any]


def _selection(ask: SearchMessages) -> Selection:
    bindings = {name: value for name in FILTERS if (value := getattr(ask, name)) is not None}
    conditions = " AND ".join(["1", *(FILTERS[name] for name in bindings)])
    if ask.tag is None:
        return Selection("messages_message AS m", "m.sequence", conditions, bindings)
    source = "messages_tag AS t CROSS JOIN messages_message AS m ON m.sequence = t.sequence"
    return Selection(source, "t.sequence", f"t.tag = :tag AND {conditions}", bindings | {"tag": ask.tag})


def _least_of_slice(connection: apsw.Connection, selection: Selection, found: Found) -> int | None:
    """Where the next slice ends: so many messages, or so many bytes; None if there are no more."""
    source, sequence, conditions, bindings = selection
    rows = connection.execute(
        f"SELECT {sequence}, content_bytes FROM {source} WHERE {conditions} AND {sequence} < :before"
        f" ORDER BY {sequence} DESC LIMIT {SEARCH_SLICE_ROWS + 1}",
        bindings | {"before": found.before},
    )
    least, slice_bytes = None, 0
    for place, (at, content_bytes) in enumerate(rows):
        if place == SEARCH_SLICE_ROWS or slice_bytes >= SEARCH_SLICE_BYTES:
            break
        least = at
        slice_bytes += content_bytes
    else:
        found.is_done = True
    found.scanned_bytes += slice_bytes
    return least


def _candidates(
    connection: apsw.Connection, selection: Selection, question: Question, *, least: int, before: int
) -> Iterable[Any]:
    """What may match in a slice, newest first: all that holds one of the parts folded, or the query as it stands."""
    source, sequence, conditions, bindings = selection
    parts = {f"part{number}": part for number, part in enumerate(question.parts)}
    held = [f"{FOLDED} OR {LABELS}".replace("?", f":{name}") for name in parts] or ["0"]
    if not question.by_words_only:
        parts["query"] = question.query
        held.append(AS_IT_STANDS)
    return connection.execute(
        f"SELECT m.sequence, importance, content, folded_content, summary, tags FROM {source} WHERE {conditions}"
        f" AND {sequence} >= :least AND {sequence} < :before AND ({' OR '.join(held)}) ORDER BY {sequence} DESC",
        bindings | parts | {"least": least, "before": before},
    )


def _keep(best: list[Rank], rank: Rank, ranks_max: int) -> None:
    if len(best) < ranks_max:
        heapq.heappush(best, rank)
    else:
        heapq.heappushpop(best, rank)


def results(connection: apsw.Connection, ask: SearchMessages, question: Question, found: Found) -> dict[str, Any]:
    """The best that were found and are still there, as facts."""
    best = sorted(found.exact, reverse=True)[: ask.limit]
    for words in sorted(found.ranked, reverse=True):
        best += sorted(found.ranked[words], reverse=True)[: ask.limit - len(best)]
    is_default = not ask.model_fields_set & {"limit", "context_before", "context_after"}
    budget = replies.Budget(REPLY_BYTES_DEFAULT if is_default else REPLY_BYTES_MAX)
    shown: list[dict[str, Any]] = []
    for place, (_, _, sequence) in enumerate(best):
        message = next(queries.read_messages(connection, "WHERE sequence = ?", (sequence,)), None)
        # Gone or changed since the scan passed it.
        if message is None or not (scores := _scores(question, message)):
            continue
        facts = _fit(budget, _result(connection, ask, question, message) | scores, len(best) - place)
        if facts is None:
            return {"results": shown, "truncated": True}
        shown.append(facts)
    return {"results": shown}


def _fit(budget: replies.Budget, facts: dict[str, Any], still_to_come: int) -> dict[str, Any] | None:
    """The result; with less metadata if it would take more than its share from those behind it."""
    share = budget.left // still_to_come
    for form in (facts, *replies.without_metadata(facts)):
        if replies.reply_bytes(form) <= share and budget.take(form):
            return form
    return form if budget.take(form) else None


def _result(connection: apsw.Connection, ask: SearchMessages, question: Question, message: Message) -> dict[str, Any]:
    cut = excerpt(message.content, question)
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


def _scores(question: Question, message: Message) -> dict[str, Any]:
    """Which fields matched, and what each gives to the score; empty if none does."""
    metadata = message.metadata
    match = question.match(searched(message.content, None, metadata.summary, metadata.tags))
    scores = dict.fromkeys((*FIELDS, "context"), 0.0)
    if match.exact and not question.by_words_only:
        matched = match.exact
        scores |= dict.fromkeys(matched, 1.0)
    else:
        matched = tuple(match.words)
        earlier: set[str] = set()
        for name in matched:
            scores[name] = len(match.words[name] - earlier) / len(question.words)
            earlier |= match.words[name]
    if not matched:
        return {}
    return {
        "score": sum(scores.values()),
        "scores": scores,
        "matched_fields": list(matched),
        "exact": bool(match.exact),
    }
