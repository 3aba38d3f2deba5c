"""Search row by row, newest first: what the tables of search do not know yet, and all there is where there are none.

No table can disagree with it: a message is found as soon as it is stored and never after it is gone. SQLite finds the
candidates (filters, and parts of what is kept folded), Python decides (matching.py, terms.py): what the first lets
through, the second may refuse. The whole store is looked through in slices, each one visit to a reader, so that a long
search lets others pass. Exact hits end it when there are enough; of messages that hold words of the query the best are
kept as candidates, and what is counted on the way says how rare each word is.
"""

import heapq
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import apsw

from convmem.limits import (
    SEARCH_CANDIDATES_MAX,
    SEARCH_EXACT_NEWEST,
    SEARCH_PARTS_MAX,
    SEARCH_SCAN_BYTES_MAX,
    SEARCH_SLICE_BYTES,
    SEARCH_SLICE_ROWS,
    SEARCH_TAIL_WHOLE_ROWS,
)
from convmem.messages import terms
from convmem.messages.exact import AS_IT_STANDS, NEWEST, ROW, TAGGED, Hit
from convmem.messages.filters import selection
from convmem.messages.inputs import SearchMessages
from convmem.messages.matching import Question, searched
from convmem.messages.model import split_tags
from convmem.messages.stems import root
from convmem.messages.terms import Asked
from convmem.text import fold

# Whether a message may match, `?` being a part of the query. instr counts bytes, so U+0000 is an ordinary character.
PART = "instr(coalesce(folded_content, lower(content)), ?) OR instr(folded_labels, ?)"
COLUMNS = f"m.sequence, {ROW}"


class Wanted(NamedTuple):
    """What is looked for: the filters; the query as it is, unless only its words count; its words, if they do."""

    ask: SearchMessages
    question: Question
    asked: Asked | None

    @property
    def is_exact(self) -> bool:
        """True if messages that hold the whole query are looked for."""
        return self.ask.match != "any"

    @property
    def exact_max(self) -> int:
        """How many of the newest exact hits are ranked among each other."""
        return max(SEARCH_EXACT_NEWEST, self.ask.limit)


@dataclass
class Seen:
    """What was found so far. Looking on goes below `before`, unless it `is_done`."""

    before: int = NEWEST
    is_done: bool = False
    rows: int = 0
    scanned_bytes: int = 0
    exact: list[Hit] = field(default_factory=list)
    candidates: list[tuple[int, int, int]] = field(default_factory=list)
    # Of the messages that hold words: in how many each word stands, by its place in the query; and their lengths.
    frequencies: Counter[int] = field(default_factory=Counter)
    words: Counter[str] = field(default_factory=Counter)

    @property
    def sequences(self) -> list[int]:
        """The messages that hold words of the query, as candidates for ranking."""
        return [sequence for _, _, sequence in self.candidates]


def slice_of_all(connection: apsw.Connection, wanted: Wanted, seen: Seen) -> None:
    """Look at the next slice of all messages that pass the filters."""
    least = _least_of_slice(connection, wanted.ask, seen)
    if least is not None:
        source, sequence, conditions, bindings = _source(wanted.ask)
        within = f"{conditions} AND {sequence} >= :least AND {sequence} < :before"
        bindings |= {"least": least, "before": seen.before}
        seen.before = least
        rows = _candidates(connection, wanted, source, within, sequence, bindings)
        seen.is_done |= _look(seen, wanted, rows, wanted.exact_max)


def tail(connection: apsw.Connection, wanted: Wanted, watermark: int) -> Seen:
    """All messages that pass the filters and were changed after a watermark. Not done if that are too many bytes."""
    seen = Seen()
    selected = selection(wanted.ask)
    bindings = selected.bindings | {"watermark": watermark}
    source = "messages_message AS m INDEXED BY messages_by_change"
    count, seen.scanned_bytes = connection.execute(
        f"SELECT count(*), coalesce(sum(content_bytes), 0) FROM {source} WHERE changed_sequence > ?", (watermark,)
    ).fetchone() or (0, 0)
    if seen.scanned_bytes <= SEARCH_SCAN_BYTES_MAX:
        within = f"changed_sequence > :watermark AND {selected.conditions}"
        # Of a few rows each is looked at as the tables will know it: no part of a word finds oreilly in o'reilly.
        is_short = count <= SEARCH_TAIL_WHOLE_ROWS and seen.scanned_bytes <= SEARCH_SLICE_BYTES
        rows = _candidates(connection, wanted, source, within, "m.sequence", bindings, every=is_short)
        _look(seen, wanted, rows)
        seen.is_done = True
    return seen


class _Source(NamedTuple):
    tables: str
    sequence: str
    conditions: str
    bindings: dict[str, Any]


def _source(ask: SearchMessages) -> _Source:
    """Where all messages that pass the filters come from, by sequence."""
    selected = selection(ask)
    if ask.tag is None:
        return _Source("messages_message AS m", "m.sequence", selected.conditions, selected.bindings)
    return _Source(TAGGED, "t.sequence", f"t.tag = :tag AND {selected.conditions}", selected.bindings)


def _least_of_slice(connection: apsw.Connection, ask: SearchMessages, seen: Seen) -> int | None:
    """Where the next slice ends: so many messages, or so many bytes; None if there are no more."""
    source, sequence, conditions, bindings = _source(ask)
    rows = connection.execute(
        f"SELECT {sequence}, content_bytes FROM {source} WHERE {conditions} AND {sequence} < :before"
        f" ORDER BY {sequence} DESC LIMIT {SEARCH_SLICE_ROWS + 1}",
        bindings | {"before": seen.before},
    )
    least, slice_rows, slice_bytes = None, 0, 0
    for at, content_bytes in rows:
        if slice_rows == SEARCH_SLICE_ROWS or slice_bytes >= SEARCH_SLICE_BYTES:
            break
        least = at
        slice_rows += 1
        slice_bytes += content_bytes
    else:
        seen.is_done = True
    seen.rows += slice_rows
    seen.scanned_bytes += slice_bytes
    return least


def _candidates(
    connection: apsw.Connection,
    wanted: Wanted,
    source: str,
    within: str,
    order: str,
    bindings: dict[str, Any],
    *,
    every: bool = False,
) -> Iterable[Any]:
    """What may match, newest first: all that holds a part of the query folded, or the query as it stands; or every row
    if words are looked for.
    """
    if every and wanted.asked:
        return connection.execute(f"SELECT {COLUMNS} FROM {source} WHERE {within} ORDER BY {order} DESC", bindings)
    texts = _parts(wanted.asked) if wanted.asked else []
    if wanted.is_exact:
        texts.append(wanted.question.folded)
    parts = {f"part{number}": part for number, part in enumerate(texts)}
    held = [PART.replace("?", f":{name}") for name in parts] or ["0"]
    if wanted.is_exact:
        parts["query"] = wanted.question.query
        held.append(AS_IT_STANDS)
    return connection.execute(
        f"SELECT {COLUMNS} FROM {source} WHERE {within} AND ({' OR '.join(held)}) ORDER BY {order} DESC",
        bindings | parts,
    )


def _parts(asked: Asked) -> list[str]:
    """Texts of which a message holds one that holds a term of the query; the longest of them, if there are many."""
    # What stands in the words before their endings are taken off; letters beside other terms make no hit alone.
    parts = {root(term) for term in asked.terms[: asked.letters.start or None]}
    return sorted(parts, key=len, reverse=True)[:SEARCH_PARTS_MAX]


def _look(seen: Seen, wanted: Wanted, rows: Iterable[Any], exact_max: int | None = None) -> bool:
    """Note what matches; True once there are `exact_max` exact hits."""
    for sequence, importance, content, folded, summary, tags in rows:
        labels = split_tags(tags)
        if wanted.is_exact and (fields := wanted.question.held(searched(content, folded, summary, labels))):
            seen.exact.append(Hit(len(fields), importance, sequence))
            if len(seen.exact) == exact_max:
                return True
        elif wanted.asked:
            _count(seen, wanted.asked, (importance, sequence), (content, folded), [summary or "", *labels])
    return False


def _count(seen: Seen, asked: Asked, rank: tuple[int, int], content: tuple[str, str], labels: list[str]) -> None:
    """Note which words a message holds, and keep it if it is among those that hold the most."""
    found = [terms.found(asked, text, folded) for text, folded in (content, *((one, fold(one)) for one in labels))]
    places = {place for one in found for place in one.counts}
    if not places:
        return
    seen.frequencies.update(places)
    seen.words += Counter(rows=1, words=sum(one.words for one in found))
    candidate = (len(places), *rank)
    if len(seen.candidates) < SEARCH_CANDIDATES_MAX:
        heapq.heappush(seen.candidates, candidate)
    else:
        heapq.heappushpop(seen.candidates, candidate)
