"""The newest messages that hold a query as it is, looked up in the tables of search and decided on the row.

A message is found by either form of the query: folded, or folded letter by letter (grams.py). Of each form the tables
are asked for all that a message must have to hold it: pairs of letters of joined scripts (scripts.py), grams of all
else, and the tokens of the filters. They answer lazily, the newest first, and may name too many: stale messages,
letters in another order, values of filters that share a token. So every row is looked at. They never name too few of
what they know; what changed after their watermark is looked through by the caller, afterwards: what changes while this
runs moves there, and is missed by whoever looks there first.

One or two letters are nearly always found among the newest messages; where they are not, they begin grams, which the
vocabulary of the table knows. If they begin too many, the rows themselves are the shortest way, and the answer says so.
A session or a tag with few messages is looked through without the tables.

A visit ends after so many rows or bytes looked at, and the next one goes on below: what a limit on hits costs is not
known before.

Rejected: asking both tables whenever both could say something (the second one costs more than the rows it spares, if
the first one says enough); prefixes of pairs for a letter that begins a run (FTS5 reads all that a prefix stands for
before it answers).
"""

import re
from contextlib import closing
from typing import Any, Literal, NamedTuple

import apsw

from convmem.limits import (
    SEARCH_BEGUN_GRAMS_MAX,
    SEARCH_DENSITY_ROWS,
    SEARCH_FEW_ROWS,
    SEARCH_NEWEST_ROWS,
    SEARCH_NEWEST_ROWS_A_HIT,
    SEARCH_SLICE_BYTES,
    SEARCH_SLICE_ROWS,
    SEARCH_TELLING_TERMS,
    SEARCH_TERMS_MAX,
)
from convmem.messages.filters import selection, tokens_asked
from convmem.messages.grams import GRAM_CODE_POINTS, MARKS, forms, grams, held_tokens, marked
from convmem.messages.inputs import SearchMessages
from convmem.messages.matching import Question, searched
from convmem.messages.model import split_tags
from convmem.messages.scripts import JOINED_RUN
from convmem.messages.search_tables import newest, quoted

NEWEST = 2**63 - 1
# Whether a row may hold the query, folded or as it stands: instr counts bytes, so U+0000 is an ordinary character.
AS_IT_STANDS = (
    "(m.folded_content IS NOT NULL AND instr(m.content, :query)) OR instr(m.summary, :query) OR instr(m.tags, :query)"
)
HELD = f"instr(coalesce(m.folded_content, {{content}}), :folded) OR instr(m.folded_labels, :folded) OR {AS_IT_STANDS}"
HAS_LATIN = re.compile("[a-z]").search
ROW = "importance, content, coalesce(folded_content, lower(content)), summary, tags"


class Hit(NamedTuple):
    """A message that holds the query: in how many fields, how important it is, and its sequence. The greatest is the
    best.
    """

    fields: int
    importance: int
    sequence: int


class Found(NamedTuple):
    """What a visit found, newest first, and what is still to be looked through below `before`: nothing, either because
    there is nothing or because there are hits enough; the tables, by the next visit; or all rows, without the tables.
    """

    hits: list[Hit]
    before: int
    rest: Literal["none", "tables", "rows"]


class Source(NamedTuple):
    """Where rows come from, in SQL: the tables, in which `m` is the message, and what makes its rows those below
    `:before`, the newest first. A visit looks at `rows`, and at more only as long as every `rows_a_hit` of them brought
    a hit, if that is not 0.
    """

    tables: str
    below: str
    bindings: dict[str, str]
    rows: int
    rows_a_hit: int = 0


TAGGED = "messages_tag AS t CROSS JOIN messages_message AS m ON m.sequence = t.sequence"
ALL = "WHERE m.sequence < :before ORDER BY m.sequence DESC"
OF_SESSION = "WHERE m.session_id = :few AND m.sequence < :before ORDER BY m.sequence DESC"
WITH_TAG = "WHERE t.tag = :few AND t.sequence < :before ORDER BY t.sequence DESC"


def find(
    connection: apsw.Connection,
    ask: SearchMessages,
    question: Question,
    watermark: int,
    hits_max: int,
    before: int = NEWEST,
) -> Found:
    """Up to `hits_max` of the newest live messages below `before` that hold the query, pass the filters and have not
    changed after the watermark; newest first, as far as one visit gets.

    The tables of search are on the connection as schema `search`. Raises apsw.Error if they are damaged.
    """
    source = _few(connection, ask)
    if source is None and before == NEWEST and _is_short(question.folded):
        source = Source("messages_message AS m", ALL, {}, SEARCH_NEWEST_ROWS, SEARCH_NEWEST_ROWS_A_HIT)
    if source is None:
        terms = [_terms(connection, form) for form in forms(question.query, question.folded)]
        if not all(terms):
            return Found([], before, "rows")
        source = _named(terms, list(tokens_asked(ask)))
    return _look(connection, ask, question, source, watermark=watermark, hits_max=hits_max, before=before)


def _few(connection: apsw.Connection, ask: SearchMessages) -> Source | None:
    """The messages of the session or with the tag that is asked for, if they are few."""
    if ask.session_id is not None and _is_few(connection, "messages_message", "session_id", ask.session_id):
        return Source("messages_message AS m", OF_SESSION, {"few": ask.session_id}, SEARCH_SLICE_ROWS)
    if ask.tag is not None and _is_few(connection, "messages_tag", "tag", ask.tag):
        return Source(TAGGED, WITH_TAG, {"few": ask.tag}, SEARCH_SLICE_ROWS)
    return None


def _is_few(connection: apsw.Connection, table: str, column: str, value: str) -> bool:
    query = f"SELECT 1 FROM {table} WHERE {column} = ? LIMIT 1 OFFSET {SEARCH_FEW_ROWS}"
    return connection.execute(query, (value,)).fetchone() is None


def _is_short(folded: str) -> bool:
    """True if so little text is often found among the newest messages, and costs much to look up."""
    return len(folded) < GRAM_CODE_POINTS and not held_tokens(folded)


class Terms(NamedTuple):
    """Parts of a MATCH on a table of search that all must be true of a message that holds a form of the query."""

    table: str
    parts: list[str]


def _terms(connection: apsw.Connection, form: str) -> list[Terms]:
    """What a message must have to hold this form of the query, the rarer first; nothing if the tables do not help."""
    tokens, found = held_tokens(form), grams(form)
    words = _telling(connection, "messages_word", tokens)
    parts = _telling(connection, "messages_gram", found)
    if tokens:
        # A letter of a joined script says as much as three others; punctuation and the marks of joined runs say little.
        said_by_tokens, said_by_grams = 3 * len("".join(tokens)), sum(map(str.isalnum, "".join(found)))
        if said_by_tokens < said_by_grams:
            return [parts]
        return [words, parts] if len("".join(tokens)) == 1 and said_by_grams else [words]
    if JOINED_RUN.fullmatch(form):
        return [Terms("messages_word", [f"{quoted(form)}*"])]
    if found:
        return [parts]
    text = marked(form)
    # If no gram begins with it, this one is not there either.
    begun = _begun(connection, text) or [(text + MARKS)[:GRAM_CODE_POINTS]]
    either = " OR ".join(map(quoted, begun))
    return [Terms("messages_gram", [f"({either})"])] if len(begun) <= SEARCH_BEGUN_GRAMS_MAX else []


def _begun(connection: apsw.Connection, text: str) -> list[str]:
    """The grams that begin with one or two letters; one more than SEARCH_BEGUN_GRAMS_MAX if they are too many."""
    rows = connection.execute(
        f"SELECT term FROM search.messages_gram_row WHERE term >= ? AND term <= ? LIMIT {SEARCH_BEGUN_GRAMS_MAX + 1}",
        (text, text + 2 * chr(0x10FFFF)),
    )
    return [term for (term,) in rows]


def _named(terms: list[list[Terms]], filters: list[str]) -> Source:
    """The messages that the tables name: by all terms of the only form, or by the first terms of either form."""
    asked, either_or_both = (terms[0], " INTERSECT ") if len(terms) == 1 else ([form[0] for form in terms], " UNION ")
    named, bindings = [], {}
    for number, (table, parts) in enumerate(asked):
        name = f"match{number}"
        bindings[name] = " AND ".join([*parts, *map(quoted, filters)])
        named.append(f"SELECT rowid AS at FROM search.{table} WHERE {table} MATCH :{name} AND rowid < :before")
    # Two selects are merged as they come, the newest first. Without a LIMIT, SQLite drops the order of what is inside.
    inside = f"{either_or_both.join(named)} ORDER BY at DESC LIMIT -1"
    tables = f"({inside}) AS t CROSS JOIN messages_message AS m ON m.sequence = t.at"
    return Source(tables, "", bindings, SEARCH_SLICE_ROWS)


def _telling(connection: apsw.Connection, table: str, terms: list[str]) -> Terms:
    """The rarest of some terms, which say the most: asking for all costs more than the rows that it spares."""
    asked = [quoted(term) for term in _spread(terms)]
    if len(asked) > SEARCH_TELLING_TERMS:
        asked = sorted(asked, key=lambda term: _density(connection, table, term))[:SEARCH_TELLING_TERMS]
    return Terms(table, asked)


def _density(connection: apsw.Connection, table: str, term: str) -> float:
    """About which part of the newest messages holds a term."""
    count, least, greatest = newest(connection, table, term, SEARCH_DENSITY_ROWS)
    return 0.0 if count < SEARCH_DENSITY_ROWS else count / (greatest - least + 1)


def _spread(terms: list[str]) -> list[str]:
    """All terms, or so many from everywhere among them."""
    if len(terms) <= SEARCH_TERMS_MAX:
        return terms
    return [terms[at * len(terms) // SEARCH_TERMS_MAX] for at in range(SEARCH_TERMS_MAX)]


def _look(
    connection: apsw.Connection,
    ask: SearchMessages,
    question: Question,
    source: Source,
    *,
    watermark: int,
    hits_max: int,
    before: int,
) -> Found:
    """Look at the rows of a source below `before`, as many as one visit may."""
    selected = selection(ask)
    # Where content is not kept folded, lower() would do it; for a query without Latin letters that is a copy in vain.
    held = HELD.format(content="lower(m.content)" if HAS_LATIN(question.folded) else "m.content")
    query = (
        f"SELECT m.sequence, m.content_bytes, CASE WHEN m.changed_sequence <= :watermark AND {selected.conditions}"
        f" AND ({held}) THEN 1 ELSE 0 END FROM {source.tables} {source.below}"
    )
    bindings: dict[str, Any] = selected.bindings | source.bindings
    bindings |= {"watermark": watermark, "before": before, "query": question.query, "folded": question.folded}
    hits: list[Hit] = []
    looked_at_bytes, above = 0, before
    with closing(connection.execute(query, bindings)) as rows:
        for place, (sequence, content_bytes, is_held) in enumerate(rows, 1):
            assert sequence < above, "rows come the newest first"
            looked_at_bytes, above = looked_at_bytes + content_bytes, sequence
            if is_held and (hit := _hit(connection, question, sequence)):
                hits.append(hit)
                if len(hits) == hits_max:
                    return Found(hits, sequence, "none")
            is_enough = place >= source.rows and place >= len(hits) * source.rows_a_hit
            if is_enough or looked_at_bytes >= SEARCH_SLICE_BYTES:
                return Found(hits, sequence, "tables")
    return Found(hits, 0, "none")


def _hit(connection: apsw.Connection, question: Question, sequence: int) -> Hit | None:
    """A message that holds the query; None if it does not, although a part of SQL says that it may."""
    row: Any = connection.execute(f"SELECT {ROW} FROM messages_message WHERE sequence = ?", (sequence,)).fetchone()
    importance, content, folded, summary, tags = row
    fields = question.held(searched(content, folded, summary, split_tags(tags)))
    return Hit(len(fields), importance, sequence) if fields else None
