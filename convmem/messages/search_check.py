"""What the tables of search say otherwise than the index: every token and gram of every message they know.

Neither table can be read message by message, only token by token. So both sides are summed up: what each token stands
for is added to a bucket by the token's hash, weighted by the field, as a count and two sums over the sequences. Memory
stays the same however many words there are. What the index says is written into tables of the same kind first, some
thousand messages at a time: SQLite's own tokenizer has the last word about tokens. A difference names the table, not
the message; what helps is the same: the tables are made anew.
"""

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from zlib import crc32

import apsw

from convmem.messages import search_tables
from convmem.messages.search_tables import COLUMNS, Row, document, quoted, rows

BUCKETS = 1 << 12
ROWS_AT_ONCE = 2_000
TABLES = {"messages_word": "words", "messages_gram": "grams"}
# A token, how often it stands in messages, and two sums of where. The second notices two that changed places.
SUMS = (
    "SELECT term, sum(weight), sum(doc * weight), sum(doc % 8191 * (doc % 8191) * weight) FROM (SELECT term, doc,"
    " CASE col WHEN 'summary' THEN 2 WHEN 'tags' THEN 3 WHEN 'other' THEN 4 ELSE 1 END AS weight FROM {}"
    " WHERE doc NOT IN (SELECT value FROM json_each(?))) GROUP BY term"
)

Sums = list[tuple[int, int, int]]
# How many messages a quick look asks the tables for.
PROBES = 16


def is_sound(search: apsw.Connection, index: apsw.Connection) -> bool:
    """A quick look whether the tables can be those of this index: as many messages as they must know, and some of them,
    from the first to the last, known by what they hold. `index` sees the same moment or a later one.
    """
    watermark = search_tables.read_watermark(search)
    # Of what has changed since, nobody can say whether it was known before. Both are counted along the smallest index:
    # the messages themselves take a thousand times as long to read.
    must, may = index.execute(
        "SELECT (SELECT count(*) FROM messages_message INDEXED BY messages_by_change WHERE changed_sequence <= ?1),"
        " (SELECT count(*) FROM messages_message INDEXED BY messages_by_change"
        " WHERE changed_sequence > 0 AND sequence <= ?1)"
        " + (SELECT count(*) FROM messages_gone WHERE gone_sequence > ?1 AND sequence <= ?1)",
        (watermark,),
    ).fetchone() or (0, 0)
    for table in TABLES:
        (known,) = search.execute(f"SELECT count(*) FROM {table}_docsize").fetchone() or (0,)
        if not must <= known <= may:
            return False
    return all(_is_known(search, row) for row in _probes(index, watermark))


def _probes(index: apsw.Connection, watermark: int) -> Iterator[Row]:
    """Some messages that the tables must know, the newest among them."""
    query = (
        f"SELECT {COLUMNS} FROM messages_message WHERE sequence <= ? AND changed_sequence <= ?"
        " ORDER BY sequence DESC LIMIT 1"
    )
    for probe in range(PROBES):
        for row in index.execute(query, (watermark - watermark * probe // PROBES, watermark)):
            yield Row(*row)


def _is_known(search: apsw.Connection, row: Row) -> bool:
    """True if both tables name a message by tokens of what it holds."""
    made = document(row)
    asked = {
        "messages_word": [made.other.split()[-1], *made.content.split()[:1], *made.content.split()[-1:]],
        "messages_gram": [made.grams[:3], made.grams[len(made.grams) // 2 :][:3]],
    }
    for table, tokens in asked.items():
        match = " AND ".join(map(quoted, tokens))
        query = f"SELECT 1 FROM {table} WHERE {table} MATCH ? AND rowid = ?"
        if search.execute(query, (match, row.sequence)).fetchone() is None:
            return False
    return True


def check(search: apsw.Connection, index: apsw.Connection) -> list[str]:
    """What is wrong with the tables of search, one sentence each; empty if all is well.

    `search` sees one moment, `index` the same or a later one: messages that were changed or deleted since are left out
    on both sides. Tables are made on `search` that only it sees.
    """
    expected = {table: _empty() for table in TABLES}
    for table in TABLES:
        search.execute(f"CREATE VIRTUAL TABLE temp.known_{table} USING fts5vocab('main', '{table}', 'instance')")
    _make(search)
    watermark = search_tables.read_watermark(search)
    left_out = json.dumps(search_tables.changed_since(index, watermark))
    live = rows(index, watermark)
    while some := list(islice(live, ROWS_AT_ONCE)):
        _fill(search, some)
        for table in TABLES:
            _add(expected[table], search, f"temp.made_{table}_row", "[]")
    found = []
    for table, what in TABLES.items():
        known = _empty()
        _add(known, search, f"temp.known_{table}", left_out)
        if known != expected[table]:
            found.append(f"the tables of search: the {what} of messages are not those of the index")
    return found


def _make(search: apsw.Connection) -> None:
    """Tables of the same kind as those to be checked, empty."""
    for table in TABLES:
        (create,) = search.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).fetchone() or ("",)
        search.execute(str(create).replace(f"VIRTUAL TABLE {table}", f"VIRTUAL TABLE temp.made_{table}", 1))
        search.execute(
            f"CREATE VIRTUAL TABLE temp.made_{table}_row USING fts5vocab('temp', 'made_{table}', 'instance')"
        )


def _fill(search: apsw.Connection, some: Iterable[Row]) -> None:
    """Write into them what these messages should be known by, and nothing else."""
    for table in TABLES:
        search.execute(f"INSERT INTO temp.made_{table} (made_{table}) VALUES ('delete-all')")
    for row in some:
        search_tables.insert(search, row.sequence, document(row), "temp.made_")


def _empty() -> Sums:
    return [(0, 0, 0)] * BUCKETS


def _add(sums: Sums, search: apsw.Connection, vocabulary: str, left_out: str) -> None:
    for term, count, first, second in search.execute(SUMS.format(vocabulary), (left_out,)):
        hashed = crc32(term.encode())
        bucket = hashed % BUCKETS
        old = sums[bucket]
        # Weighted by the whole hash: tokens of one bucket must not stand in for each other.
        sums[bucket] = (old[0] + hashed * count, old[1] + hashed * first, old[2] + hashed * second)
