"""What the index knows of memory, one question a function: whole records, by what they are named by, and totals.

Records come one by one, so who wants the first few pays for no more. Order is by sequence, never by time. `searched`
alone reads all there is, in rows as light as can be: preferences and lessons are few.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import apsw

from convmem.domain import Origin
from convmem.limits import INT64_MAX
from convmem.memory.model import (
    CATEGORIES,
    DISTILLED_SECTIONS,
    Category,
    Lesson,
    Preference,
    Section,
    lesson_name,
    preference_name,
)

PREFERENCE_COLUMNS = (
    "preference_id, number, category, key, value, confidence, source, previous_value, project, created_at, updated_at,"
    " sequence, changed_sequence, device, transport, client"
)
LESSON_COLUMNS = (
    "lesson_id, number, situation, mistake, correction, project, created_at, sequence, changed_sequence, device,"
    " transport, client"
)
SECTION_COLUMNS = "section, content, created_at, updated_at, sequence, changed_sequence, device, transport, client"


def preferences(connection: apsw.Connection) -> Iterator[Preference]:
    """Every preference, the one that was stated last first."""
    return read_preferences(connection, "ORDER BY changed_sequence DESC", ())


def surest(connection: apsw.Connection) -> Iterator[Preference]:
    """Every preference by falling confidence, of equals the one that was stated last first."""
    return read_preferences(connection, "ORDER BY confidence DESC, changed_sequence DESC", ())


def lessons(connection: apsw.Connection) -> Iterator[Lesson]:
    """Every lesson, the newest first."""
    return read_lessons(connection, "ORDER BY sequence DESC", ())


def sections(connection: apsw.Connection) -> Iterator[Section]:
    """Every section of the profile, by name."""
    return read_sections(connection, "ORDER BY section", ())


def read_preferences(connection: apsw.Connection, rest: str, bindings: Sequence[Any]) -> Iterator[Preference]:
    """The preferences of `SELECT … FROM memory_preference` and `rest`, one by one as they are asked for."""
    rows: Any = connection.execute(f"SELECT {PREFERENCE_COLUMNS} FROM memory_preference {rest}", bindings)
    # fmt: off
    for (preference_id, number, category, key, value, confidence, source, previous_value, project, created_at,
         updated_at, sequence, changed_sequence, *origin) in rows:
        # fmt: on
        yield Preference(
            preference_id=preference_id,
            number=number,
            category=category,
            key=key,
            value=value,
            confidence=confidence,
            source=source,
            previous_value=previous_value,
            project=project,
            created_at=created_at,
            updated_at=updated_at,
            sequence=sequence,
            changed_sequence=changed_sequence,
            origin=Origin(*origin),
        )


def read_lessons(connection: apsw.Connection, rest: str, bindings: Sequence[Any]) -> Iterator[Lesson]:
    """The lessons of `SELECT … FROM memory_lesson` and `rest`, likewise."""
    rows: Any = connection.execute(f"SELECT {LESSON_COLUMNS} FROM memory_lesson {rest}", bindings)
    # fmt: off
    for (lesson_id, number, situation, mistake, correction, project, created_at, sequence, changed_sequence,
         *origin) in rows:
        # fmt: on
        yield Lesson(
            lesson_id=lesson_id,
            number=number,
            situation=situation,
            mistake=mistake,
            correction=correction,
            project=project,
            created_at=created_at,
            sequence=sequence,
            changed_sequence=changed_sequence,
            origin=Origin(*origin),
        )


def read_sections(connection: apsw.Connection, rest: str, bindings: Sequence[Any]) -> Iterator[Section]:
    """The sections of `SELECT … FROM memory_section` and `rest`, likewise."""
    rows: Any = connection.execute(f"SELECT {SECTION_COLUMNS} FROM memory_section {rest}", bindings)
    for section, content, created_at, updated_at, sequence, changed_sequence, *origin in rows:
        yield Section(
            section=section,
            content=content,
            created_at=created_at,
            updated_at=updated_at,
            sequence=sequence,
            changed_sequence=changed_sequence,
            origin=Origin(*origin),
        )


def read_preference(connection: apsw.Connection, sequence: int) -> Preference | None:
    """The preference that this entry created, or None."""
    return next(read_preferences(connection, "WHERE sequence = ?", (sequence,)), None)


def read_lesson(connection: apsw.Connection, sequence: int) -> Lesson | None:
    """The lesson that this entry created, or None."""
    return next(read_lessons(connection, "WHERE sequence = ?", (sequence,)), None)


def read_section(connection: apsw.Connection, section: str) -> Section | None:
    """The section of this name, or None."""
    return next(read_sections(connection, "WHERE section = ?", (section,)), None)


def preference_of(connection: apsw.Connection, project: str | None, category: str, key: str) -> Preference | None:
    """The preference that is stated under these, or None."""
    return preference_named(connection, preference_name(project, category, key))


def preference_named(connection: apsw.Connection, name: bytes) -> Preference | None:
    """The preference of this name (model.py), or None."""
    return next(read_preferences(connection, "WHERE name = ?", (name,)), None)


def lesson_of(
    connection: apsw.Connection, project: str | None, situation: str, mistake: str, correction: str
) -> Lesson | None:
    """The lesson that says just this, or None."""
    return lesson_named(connection, lesson_name(project, situation, mistake, correction))


def lesson_named(connection: apsw.Connection, name: bytes) -> Lesson | None:
    """The lesson of this name (model.py), or None."""
    return next(read_lessons(connection, "WHERE name = ?", (name,)), None)


def by_number(connection: apsw.Connection, number: int) -> Preference | Lesson | None:
    """The preference or lesson of this number, or None. Captured messages have numbers of the same counter."""
    if number > INT64_MAX:
        return None
    return _one(connection, "WHERE number = ?", "WHERE number = ?", number)


def by_id(connection: apsw.Connection, record_id: str) -> Preference | Lesson | None:
    """The preference or lesson of this ULID, or None; of several the oldest."""
    oldest = "ORDER BY sequence LIMIT 1"
    return _one(connection, f"WHERE preference_id = ? {oldest}", f"WHERE lesson_id = ? {oldest}", record_id)


def _one(connection: apsw.Connection, preference: str, lesson: str, named: int | str) -> Preference | Lesson | None:
    found = next(read_preferences(connection, preference, (named,)), None)
    return found or next(read_lessons(connection, lesson, (named,)), None)


class Identified(NamedTuple):
    """The ULID of a preference or lesson, and its name (model.py)."""

    id: str
    name: bytes


def preference_ids(connection: apsw.Connection) -> Iterator[Identified]:
    """Which preference bears which ULID."""
    rows: Any = connection.execute("SELECT preference_id, name FROM memory_preference")
    return map(Identified._make, rows)


def lesson_ids(connection: apsw.Connection) -> Iterator[Identified]:
    """Which lesson bears which ULID."""
    rows: Any = connection.execute("SELECT lesson_id, name FROM memory_lesson")
    return map(Identified._make, rows)


class Searched(NamedTuple):
    """What a search needs of a record before it knows whether to read it."""

    kind: Literal["preference", "lesson"]
    sequence: int
    project: str | None
    folded: str


def searched(connection: apsw.Connection) -> Iterator[Searched]:
    """Every preference and every lesson, each newest first."""
    for kind, order in (("preference", "changed_sequence"), ("lesson", "sequence")):
        rows: Any = connection.execute(
            f"SELECT '{kind}', sequence, project, folded FROM memory_{kind} ORDER BY {order} DESC"
        )
        yield from map(Searched._make, rows)


class Totals(NamedTuple):
    """How many there are."""

    preferences: int
    lessons: int
    sections: int


def totals(connection: apsw.Connection) -> Totals:
    """Count what is live."""
    counts: Any = connection.execute(
        "SELECT (SELECT count(*) FROM memory_preference), (SELECT count(*) FROM memory_lesson),"
        " (SELECT count(*) FROM memory_section)"
    ).fetchone()
    return Totals(*counts)


def own_sections(connection: apsw.Connection) -> int:
    """How many sections somebody wrote, beside those that distill writes."""
    return sum(found.section not in DISTILLED_SECTIONS for found in sections(connection))


def category_totals(connection: apsw.Connection) -> Mapping[Category, int]:
    """How many preferences there are of each category."""
    rows: Any = connection.execute("SELECT category, count(*) FROM memory_preference GROUP BY category")
    return dict.fromkeys(CATEGORIES, 0) | dict(rows)


class Times(NamedTuple):
    """When the oldest was created and the newest last stated, ms since the Unix epoch; None where there is none."""

    oldest_at: int | None
    newest_at: int | None


def preference_times(connection: apsw.Connection) -> Times:
    """From the first preference to the latest statement."""
    return _times(connection, "memory_preference", "updated_at")


def lesson_times(connection: apsw.Connection) -> Times:
    """From the oldest lesson to the newest."""
    return _times(connection, "memory_lesson", "created_at")


def _times(connection: apsw.Connection, table: str, newest: str) -> Times:
    found: Any = connection.execute(
        f"SELECT (SELECT min(created_at) FROM {table}), (SELECT max({newest}) FROM {table})"
    ).fetchone()
    return Times(*found)


def is_forgotten(connection: apsw.Connection, name: bytes) -> bool:
    """True if a record of this name was forgotten or deleted."""
    return connection.execute("SELECT 1 FROM memory_forgotten WHERE name = ?", (name,)).fetchone() is not None
