"""The invariants of the tables of memory: walked by `check`, the scrub and the end of every store test.

What SQL can say is one query for its violations and one sentence; names and folded texts are computed anew. The
sentences name sequences and counts, never text.
"""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import apsw

from convmem.memory import queries
from convmem.memory.model import folded_text, lesson_name, preference_name
from convmem.messages import queries as messages

VIOLATIONS_MAX = 20

# What is wrong, and the query that finds where. Every query gives one column.
INVARIANTS: tuple[tuple[str, str], ...] = (
    (
        "preference {} was stated before it was created",
        "SELECT sequence FROM memory_preference WHERE changed_sequence < sequence OR updated_at < created_at",
    ),
    (
        "preference {} is surer than sure, or less than not at all",
        "SELECT sequence FROM memory_preference WHERE confidence NOT BETWEEN 0 AND 1",
    ),
    (
        "lesson {} was changed before it was learned",
        "SELECT sequence FROM memory_lesson WHERE changed_sequence < sequence",
    ),
    (
        "section {} was written before it was created",
        "SELECT sequence FROM memory_section WHERE changed_sequence < sequence OR updated_at < created_at",
    ),
    (
        "number {} names a preference and a lesson",
        "SELECT number FROM memory_preference WHERE number IN (SELECT number FROM memory_lesson)",
    ),
    (
        "number {} is none",
        "SELECT number FROM memory_preference WHERE number < 1 UNION ALL"
        " SELECT number FROM memory_lesson WHERE number < 1",
    ),
    (
        "entry {} created two records of memory",
        "SELECT sequence FROM (SELECT sequence FROM memory_preference UNION ALL SELECT sequence FROM memory_lesson"
        " UNION ALL SELECT sequence FROM memory_section) GROUP BY sequence HAVING count(*) > 1",
    ),
)


def check(connection: apsw.Connection) -> list[str]:
    """What is wrong with the tables of memory, one sentence each; empty if all is well."""
    violations: list[str] = []
    for sentence, query in INVARIANTS:
        violations += [sentence.format(where) for (where,) in connection.execute(f"{query} LIMIT {VIOLATIONS_MAX}")]
    for walk in (misnamed_preferences, misnamed_lessons, shared_numbers):
        violations += islice(walk(connection), VIOLATIONS_MAX)
    return violations


def misnamed_preferences(connection: apsw.Connection) -> Iterator[str]:
    """Preferences that are kept under another name, or found by other words, than what they say."""
    rows: Any = connection.execute(
        "SELECT sequence, name, folded, project, category, key, value FROM memory_preference"
    )
    for sequence, name, folded, project, category, key, value in rows:
        yield from _misnamed(
            f"preference {sequence}", name == preference_name(project, category, key), folded == folded_text(key, value)
        )


def misnamed_lessons(connection: apsw.Connection) -> Iterator[str]:
    """Lessons, likewise."""
    rows: Any = connection.execute(
        "SELECT sequence, name, folded, project, situation, mistake, correction FROM memory_lesson"
    )
    for sequence, name, folded, project, *texts in rows:
        yield from _misnamed(f"lesson {sequence}", name == lesson_name(project, *texts), folded == folded_text(*texts))


def _misnamed(record: str, is_named: bool, is_folded: bool) -> Iterator[str]:
    if not is_named:
        yield f"{record} is kept under another name than its own"
    if not is_folded:
        yield f"{record} is found by other words than its own"


def shared_numbers(connection: apsw.Connection) -> Iterator[str]:
    """Numbers that a captured message bears too."""
    records: tuple[Callable[[apsw.Connection], Iterator[Any]], ...] = (queries.preferences, queries.lessons)
    for read in records:
        for record in read(connection):
            if messages.captured_by_number(connection, record.number) is not None:
                yield f"number {record.number} names a captured message too"
