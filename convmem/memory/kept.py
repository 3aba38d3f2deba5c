"""Live memory as state events: what compaction, exports and the state hash are made of.

All of it stands for itself: no record of memory points at another.
"""

from collections.abc import Iterator
from heapq import merge
from typing import Any

import apsw

from convmem.domain import Kept, Origin, Waste
from convmem.memory import queries
from convmem.memory.events import LessonKept, PreferenceKept, RecordForgotten, SectionKept
from convmem.memory.model import Lesson, Preference, Section


def live(connection: apsw.Connection) -> Iterator[Kept]:
    """Every live record, and every name of one that is gone, by rising sequence."""
    order = "ORDER BY sequence"
    return merge(
        map(preference, queries.read_preferences(connection, order, ())),
        map(lesson, queries.read_lessons(connection, order, ())),
        map(section, queries.read_sections(connection, order, ())),
        _forgotten(connection),
        key=lambda kept: kept.sequence,
    )


def _forgotten(connection: apsw.Connection) -> Iterator[Kept]:
    rows: Any = connection.execute("SELECT sequence, forgotten_at, name FROM memory_forgotten ORDER BY sequence")
    for sequence, forgotten_at, name in rows:
        yield Kept(sequence, forgotten_at, Origin("", ""), RecordForgotten(name=name))


def preference(record: Preference) -> Kept:
    """A preference as it stands."""
    event = PreferenceKept(
        preference_id=record.preference_id,
        category=record.category,
        key=record.key,
        value=record.value,
        confidence=record.confidence,
        source=record.source,
        number=record.number,
        previous_value=record.previous_value,
        project=record.project,
        updated_at=None if record.updated_at == record.created_at else record.updated_at,
        changed_sequence=None if record.changed_sequence == record.sequence else record.changed_sequence,
    )
    return Kept(record.sequence, record.created_at, record.origin, event)


def lesson(record: Lesson) -> Kept:
    """A lesson as it stands."""
    event = LessonKept(
        lesson_id=record.lesson_id,
        situation=record.situation,
        mistake=record.mistake,
        correction=record.correction,
        number=record.number,
        project=record.project,
        changed_sequence=None if record.changed_sequence == record.sequence else record.changed_sequence,
    )
    return Kept(record.sequence, record.created_at, record.origin, event)


def section(record: Section) -> Kept:
    """A section as it stands."""
    event = SectionKept(
        section=record.section,
        content=record.content,
        updated_at=None if record.updated_at == record.created_at else record.updated_at,
        changed_sequence=None if record.changed_sequence == record.sequence else record.changed_sequence,
    )
    return Kept(record.sequence, record.created_at, record.origin, event)


def waste(connection: apsw.Connection) -> Waste:
    """What this generation of the log holds in vain."""
    rows: Any = connection.execute("SELECT name, count FROM memory_total").fetchall()
    counts = dict(rows)
    return Waste(deleted=counts.get("deleted", 0), superseded=counts.get("superseded", 0))
