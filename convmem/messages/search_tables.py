"""The tables of search-<generation>.db: what they hold of a message, and how they follow the index.

    messages_word    tokens (terms.py) of content, summary and tags; beside them when and by whom it was said, tokens of
                     the filters, first letters of runs, pairs of letters of loose forms (grams.py). Contentless: it
                     answers with sequences
    messages_gram    grams (grams.py) of all fields, and the tokens of filters. Contentless
    messages_state   through which change the tables know the messages (`watermark`), and what was ever counted into
                     them: documents and the length of each field in words

A message's row has its sequence as rowid. The tables may be behind; what changed after the watermark is looked at row
by row. They may also know a message that is gone: whoever finds a sequence reads its row in the index. So the tables
are never a reason to answer with something that is not there, nor to leave out something that is.

The word table tells in which field a token stands; the gram table tells nothing but the message, which is a third of
the size and no slower.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import apsw

from convmem.limits import INDEXER_DOCUMENTS
from convmem.messages import terms
from convmem.messages.filters import tokens_of
from convmem.messages.grams import first_letters, forms, gram_text, pairs
from convmem.messages.model import split_tags
from convmem.messages.stems import STEMMER_VERSION
from convmem.text import UNICODE_VERSION, fold

# Raised when the meaning of a token changes without a change below.
TOKENS = 2
VERSION = f"{TOKENS} {UNICODE_VERSION} {STEMMER_VERSION}"
CREATE = """
CREATE VIRTUAL TABLE messages_word USING fts5(
    content, summary, tags, other, content='', contentless_delete=1, detail=full,
    tokenize="unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);
CREATE VIRTUAL TABLE messages_gram USING fts5(
    body, content='', contentless_delete=1, detail=none, tokenize='trigram case_sensitive 1'
);
CREATE VIRTUAL TABLE messages_gram_row USING fts5vocab(messages_gram, 'row');
CREATE TABLE messages_state (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    watermark INTEGER NOT NULL,
    documents INTEGER NOT NULL,
    content_words INTEGER NOT NULL, summary_words INTEGER NOT NULL, tags_words INTEGER NOT NULL
) STRICT;
INSERT INTO messages_state VALUES (1, 0, 0, 0, 0, 0);
"""
# What a document is made of, in the order of Row.
COLUMNS = (
    "sequence, content, coalesce(folded_content, lower(content)), summary, tags, timestamp, session_id, project, role,"
    " memory_kind, memory_tier, capture_kind"
)


class Row(NamedTuple):
    """A live message, as far as it is searched."""

    sequence: int
    content: str
    folded_content: str
    summary: str | None
    tags: str
    timestamp: int
    session_id: str
    project: str | None
    role: str
    kind: str
    tier: str
    captured_kind: str | None


class Document(NamedTuple):
    """What the two tables hold of a message, and the length of its fields in words."""

    content: str
    summary: str
    tags: str
    other: str
    grams: str
    words: tuple[int, int, int]


def document(row: Row) -> Document:
    """What the tables hold of a message."""
    labels = [label for label in (row.summary, *split_tags(row.tags)) if label]
    texts = [(row.content, row.folded_content), *((label, fold(label)) for label in labels)]
    tokens = [terms.indexed(text, folded) for text, folded in texts]
    first_tag = 1 + bool(row.summary)
    summary, tags = tokens[1:first_tag], tokens[first_tag:]
    filters = tokens_of(row._asdict())
    found = [list(forms(text, folded)) for text, folded in texts]
    beside = [token for both in found for loose in both[1:] for token in pairs(loose)]
    beside += [letter for both in found for form in both for letter in first_letters(form)]
    return Document(
        content=tokens[0][0],
        summary=" ".join(text for text, _ in summary),
        tags=" ".join(text for text, _ in tags),
        other=" ".join([*terms.circumstances(row.timestamp, row.role), *filters, *dict.fromkeys(beside)]),
        grams=gram_text(form for both in found for form in both) + "".join(filters),
        words=(tokens[0][1], sum(count for _, count in summary), sum(count for _, count in tags)),
    )


def changes(index: apsw.Connection, watermark: int) -> tuple[list[tuple[int, bool]], int]:
    """The messages changed after a watermark, the earliest first: (sequence, whether it is gone), and the change up to
    which these are all. What changed at once stays together.
    """
    # Limited one by one, so that each goes along its own index and stops.
    nearest = " UNION ALL ".join(
        f"SELECT at FROM (SELECT {at} AS at FROM {table} WHERE {at} > ?1 ORDER BY {at} LIMIT {INDEXER_DOCUMENTS})"
        for table, at in (("messages_message", "changed_sequence"), ("messages_gone", "gone_sequence"))
    )
    (through,) = index.execute(
        f"SELECT max(at) FROM (SELECT at FROM ({nearest}) ORDER BY at LIMIT {INDEXER_DOCUMENTS})", (watermark,)
    ).fetchone() or (None,)
    if through is None:
        return [], watermark
    rows = index.execute(
        "SELECT changed_sequence AS at, sequence, 0 FROM messages_message"
        " WHERE changed_sequence > ?1 AND changed_sequence <= ?2 UNION ALL"
        " SELECT gone_sequence, sequence, 1 FROM messages_gone WHERE gone_sequence > ?1 AND gone_sequence <= ?2"
        " ORDER BY at",
        (watermark, through),
    )
    return [(sequence, bool(is_gone)) for _, sequence, is_gone in rows], int(through)


def feed(search: apsw.Connection, index: apsw.Connection, pause: Callable[[], None]) -> int:
    """Let the tables follow the index by one transaction; return how many messages, 0 when they know all.

    `index` sees one moment while this runs. `pause` is called between two messages and may wait.
    """
    watermark = read_watermark(search)
    found, through = changes(index, watermark)
    if not found:
        return 0
    counted = [0, 0, 0, 0]
    with search:
        for sequence, is_gone in found:
            row = None if is_gone else _row(index, sequence)
            words = replace(search, sequence, row, is_new=sequence > watermark)
            counted = [sum(pair) for pair in zip(counted, words, strict=True)]
            pause()
        search.execute(
            "UPDATE messages_state SET watermark = ?, documents = documents + ?, content_words = content_words + ?,"
            " summary_words = summary_words + ?, tags_words = tags_words + ?",
            (through, *counted),
        )
    return len(found)


def read_watermark(search: apsw.Connection, schema: str = "main") -> int:
    """The change through which the tables know the messages."""
    (watermark,) = search.execute(f"SELECT watermark FROM {schema}.messages_state").fetchone() or (0,)
    return int(watermark)


def lag(index: apsw.Connection, watermark: int) -> int:
    """How many changes of the index lie behind a watermark."""
    changed = "SELECT count(*) FROM messages_message WHERE changed_sequence > ?1"
    gone = "SELECT count(*) FROM messages_gone WHERE gone_sequence > ?1"
    (count,) = index.execute(f"SELECT ({changed}) + ({gone})", (watermark,)).fetchone() or (0,)
    return int(count)


def changed_since(index: apsw.Connection, watermark: int) -> list[int]:
    """The messages that tables with this watermark may know otherwise than the index shows them."""
    rows = index.execute(
        "SELECT sequence FROM messages_message WHERE changed_sequence > ?1"
        " UNION SELECT sequence FROM messages_gone WHERE gone_sequence > ?1",
        (watermark,),
    )
    return [sequence for (sequence,) in rows]


def _row(index: apsw.Connection, sequence: int) -> Row | None:
    found: Any = index.execute(f"SELECT {COLUMNS} FROM messages_message WHERE sequence = ?", (sequence,)).fetchone()
    return None if found is None else Row(*found)


def rows(index: apsw.Connection, watermark: int) -> Iterator[Row]:
    """The live messages that the tables know as they stand, by sequence."""
    query = f"SELECT {COLUMNS} FROM messages_message WHERE changed_sequence <= ? ORDER BY sequence"
    return (Row(*row) for row in index.execute(query, (watermark,)))


def replace(search: apsw.Connection, sequence: int, row: Row | None, *, is_new: bool) -> tuple[int, int, int, int]:
    """Let the tables know a message as it stands, or not at all; unless it `is_new`, they may know it otherwise.

    Return what it adds to the state: how many documents, and the words of each field.
    """
    if not is_new:
        for table in ("messages_word", "messages_gram"):
            search.execute(f"DELETE FROM {table} WHERE rowid = ?", (sequence,))
    if row is None:
        return 0, 0, 0, 0
    made = document(row)
    insert(search, sequence, made)
    return (1, *made.words)


def insert(search: apsw.Connection, sequence: int, made: Document, prefix: str = "") -> None:
    """Write what is known of a message into the tables; with a prefix, into others of the same kind so named."""
    search.execute(
        f"INSERT INTO {prefix}messages_word (rowid, content, summary, tags, other) VALUES (?, ?, ?, ?, ?)",
        (sequence, made.content, made.summary, made.tags, made.other),
    )
    search.execute(f"INSERT INTO {prefix}messages_gram (rowid, body) VALUES (?, ?)", (sequence, made.grams))


def quoted(token: str) -> str:
    """A token as MATCH takes it: nothing in it is an operator."""
    return '"' + token.replace('"', '""') + '"'


class Newest(NamedTuple):
    """Of the newest messages that match: how many were looked at, and the least and greatest of their sequences."""

    rows: int
    least: int
    greatest: int


def newest(connection: apsw.Connection, table: str, match: str, rows_max: int) -> Newest:
    """How close the newest messages that match stand to each other; counting all would take as long as there are."""
    found, least, greatest = connection.execute(
        f"SELECT count(*), min(rowid), max(rowid) FROM (SELECT rowid FROM search.{table} WHERE {table} MATCH ?"
        " ORDER BY rowid DESC LIMIT ?)",
        (match, rows_max),
    ).fetchone() or (0, None, None)
    return Newest(int(found), int(least or 0), int(greatest or 0))
