"""How the events of memory show in the index (create.py): the same events make the same rows, whenever and wherever.

An applier knows the event and its place in the log, nothing else: no clock, no question that the log does not answer.
"""

from collections.abc import Callable, Mapping
from typing import Any

import apsw
from msgspec import UNSET

from convmem.domain import Event, Place
from convmem.memory.events import (
    LessonForgotten,
    LessonKept,
    LessonSaved,
    PreferenceForgotten,
    PreferenceKept,
    PreferenceSaved,
    PreferenceStated,
    RecordForgotten,
    SectionDeleted,
    SectionKept,
    SectionWritten,
)
from convmem.memory.model import folded_text, lesson_name, preference_name, section_name


def preference_saved(connection: apsw.Connection, event: PreferenceSaved, place: Place) -> None:
    """Show a new preference; it was created at its entry's time, unless it says another."""
    place = _said(event.timestamp, place)
    _insert_preference(connection, event, place, None, place.at_ms, place.sequence)


def preference_kept(connection: apsw.Connection, event: PreferenceKept, place: Place) -> None:
    """Show a preference as it stood."""
    updated_at = place.at_ms if event.updated_at is None else event.updated_at
    changed_sequence = place.sequence if event.changed_sequence is None else event.changed_sequence
    _insert_preference(connection, event, place, event.previous_value, updated_at, changed_sequence)


def _insert_preference(
    connection: apsw.Connection,
    event: PreferenceSaved | PreferenceKept,
    place: Place,
    previous_value: str | None,
    updated_at: int,
    changed_sequence: int,
) -> None:
    connection.execute(
        "INSERT INTO memory_preference VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            place.sequence,
            preference_name(event.project, event.category, event.key),
            event.preference_id,
            event.number,
            event.category,
            event.key,
            event.value,
            event.confidence,
            event.source,
            previous_value,
            event.project,
            place.at_ms,
            updated_at,
            changed_sequence,
            *_origin(place),
            folded_text(event.key, event.value),
        ),
    )


def preference_stated(connection: apsw.Connection, event: PreferenceStated, place: Place) -> None:
    """Show what the statement changed; `updated_at` never falls, whatever the clock does."""
    found: Any = connection.execute(
        "SELECT sequence, key, value FROM memory_preference WHERE number = ?", (event.number,)
    ).fetchone()
    assert found is not None, "only a live preference was stated again"
    sequence, key, value = found
    columns: dict[str, Any] = {
        name: given for name in ("value", "confidence", "source") if (given := getattr(event, name)) is not UNSET
    }
    if event.value is not UNSET:
        columns |= {"previous_value": value, "folded": folded_text(key, event.value)}
    sets = "".join(f", {name} = ?" for name in columns)
    connection.execute(
        "UPDATE memory_preference SET updated_at = max(updated_at, ?), changed_sequence = ?, device = ?, transport = ?,"
        f" client = ?{sets} WHERE sequence = ?",
        (_said(event.timestamp, place).at_ms, place.sequence, *_origin(place), *columns.values(), sequence),
    )
    _count(connection, "superseded")


def preference_forgotten(connection: apsw.Connection, event: PreferenceForgotten, place: Place) -> None:
    """Take a preference away."""
    gone = connection.execute(
        "DELETE FROM memory_preference WHERE number = ? RETURNING name", (event.number,)
    ).fetchall()
    assert len(gone) == 1, "only a live preference was forgotten"
    _forget(connection, gone[0][0], place)
    _count(connection, "deleted")


def lesson_saved(connection: apsw.Connection, event: LessonSaved, place: Place) -> None:
    """Show a new lesson; it was learned at its entry's time, unless it says another."""
    _insert_lesson(connection, event, _said(event.timestamp, place), place.sequence)


def lesson_kept(connection: apsw.Connection, event: LessonKept, place: Place) -> None:
    """Show a lesson as it stood."""
    _insert_lesson(
        connection, event, place, place.sequence if event.changed_sequence is None else event.changed_sequence
    )


def _insert_lesson(
    connection: apsw.Connection, event: LessonSaved | LessonKept, place: Place, changed_sequence: int
) -> None:
    texts = (event.situation, event.mistake, event.correction)
    connection.execute(
        "INSERT INTO memory_lesson VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            place.sequence,
            lesson_name(event.project, *texts),
            event.lesson_id,
            event.number,
            *texts,
            event.project,
            place.at_ms,
            changed_sequence,
            *_origin(place),
            folded_text(*texts),
        ),
    )


def lesson_forgotten(connection: apsw.Connection, event: LessonForgotten, place: Place) -> None:
    """Take a lesson away."""
    gone = connection.execute("DELETE FROM memory_lesson WHERE number = ? RETURNING name", (event.number,)).fetchall()
    assert len(gone) == 1, "only a live lesson was forgotten"
    _forget(connection, gone[0][0], place)
    _count(connection, "deleted")


def section_written(connection: apsw.Connection, event: SectionWritten, place: Place) -> None:
    """Show a section as it reads now; `updated_at` never falls, whatever the clock does."""
    place = _said(event.timestamp, place)
    connection.execute(
        "UPDATE memory_section SET content = ?, updated_at = max(updated_at, ?), changed_sequence = ?, device = ?,"
        " transport = ?, client = ? WHERE section = ?",
        (event.content, place.at_ms, place.sequence, *_origin(place), event.section),
    )
    if connection.changes():
        _count(connection, "superseded")
    else:
        _insert_section(connection, event, place, place.at_ms, place.sequence)


def section_kept(connection: apsw.Connection, event: SectionKept, place: Place) -> None:
    """Show a section as it stood."""
    updated_at = place.at_ms if event.updated_at is None else event.updated_at
    _insert_section(
        connection,
        event,
        place,
        updated_at,
        place.sequence if event.changed_sequence is None else event.changed_sequence,
    )


def _insert_section(
    connection: apsw.Connection, event: SectionWritten | SectionKept, place: Place, updated_at: int, changed: int
) -> None:
    connection.execute(
        "INSERT INTO memory_section VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (place.sequence, event.section, event.content, place.at_ms, updated_at, changed, *_origin(place)),
    )


def section_deleted(connection: apsw.Connection, event: SectionDeleted, place: Place) -> None:
    """Take a section away."""
    connection.execute("DELETE FROM memory_section WHERE section = ?", (event.section,))
    assert connection.changes() == 1, "only a live section was deleted"
    _forget(connection, section_name(event.section), place)
    _count(connection, "deleted")


def record_forgotten(connection: apsw.Connection, event: RecordForgotten, place: Place) -> None:
    """Show that a record of this name stays away."""
    _forget(connection, event.name, place)


def _forget(connection: apsw.Connection, name: Any, place: Place) -> None:
    row = (name, place.at_ms, place.sequence)
    connection.execute("INSERT INTO memory_forgotten VALUES (?, ?, ?) ON CONFLICT DO NOTHING", row)


def _said(timestamp: int | None, place: Place) -> Place:
    """The place of an event that says its own time."""
    return place if timestamp is None else place._replace(at_ms=timestamp)


def _origin(place: Place) -> tuple[str, str, str | None]:
    return place.origin.device, place.origin.transport, place.origin.client


def _count(connection: apsw.Connection, name: str) -> None:
    connection.execute(
        "INSERT INTO memory_total VALUES (?, 1) ON CONFLICT (name) DO UPDATE SET count = count + 1", (name,)
    )


APPLIERS: Mapping[type[Event], Callable[[apsw.Connection, Any, Place], None]] = {
    PreferenceSaved: preference_saved,
    PreferenceStated: preference_stated,
    PreferenceForgotten: preference_forgotten,
    PreferenceKept: preference_kept,
    LessonSaved: lesson_saved,
    LessonForgotten: lesson_forgotten,
    LessonKept: lesson_kept,
    SectionWritten: section_written,
    SectionDeleted: section_deleted,
    SectionKept: section_kept,
    RecordForgotten: record_forgotten,
}
