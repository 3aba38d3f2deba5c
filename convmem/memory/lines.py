"""Memory as lines of a file of records: how a live record is written into one, and how a stranger's line is read.

    preference   known again by project, category and key
    lesson       by project and its three texts
    profile      a section, by its name

What makes it another one is its content: where and when the same was said, and under which id, is nothing new.

A line holds what the record is, with origin, times and confidence, not where it stands: no number, no sequence. It is
read twice: checked (line_checks.py), and decoded here once the whole file has passed.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import apsw
import msgspec

from convmem.domain import Borne, Event, Kept, Record, RecordType
from convmem.errors import Invalid
from convmem.limits import PROFILE_SECTIONS_MAX
from convmem.memory import kept, queries
from convmem.memory.events import LessonKept, PreferenceKept, SectionKept
from convmem.memory.line_checks import (
    LESSON,
    PREFERENCE,
    SECTION,
    borne_id,
    check_lesson,
    check_preference,
    check_section,
    look_closely,
)
from convmem.memory.model import Category, Source, lesson_name, preference_name
from convmem.record_lines import OriginLine, escaped, origin_line

Numbered = TypeVar("Numbered", PreferenceKept, LessonKept)
_ENCODER = msgspec.json.Encoder()
# What each tells beside that by which it is known.
TOLD: Mapping[type[Event], tuple[str, ...]] = {
    PreferenceKept: ("value", "confidence", "source", "previous_value"),
    LessonKept: (),
    SectionKept: ("content",),
}


class _PreferenceLine(msgspec.Struct, tag="preference", omit_defaults=True, kw_only=True):
    id: str
    category: Category
    key: str
    value: str
    confidence: float
    source: Source
    previous_value: str | None = None
    project: str | None = None
    created_at: int
    updated_at: int
    origin: OriginLine


class _LessonLine(msgspec.Struct, tag="lesson", omit_defaults=True, kw_only=True):
    id: str
    situation: str
    mistake: str
    correction: str
    project: str | None = None
    created_at: int
    origin: OriginLine


class _SectionLine(msgspec.Struct, tag="profile", kw_only=True):
    section: str
    content: str
    created_at: int
    updated_at: int
    origin: OriginLine


_PREFERENCES = msgspec.json.Decoder(_PreferenceLine)
_LESSONS = msgspec.json.Decoder(_LessonLine)
_SECTIONS = msgspec.json.Decoder(_SectionLine)


def encode_preference(record: Kept) -> bytes:
    """A live preference as a line, without its line break."""
    event = record.event
    assert isinstance(event, PreferenceKept)
    line = _PreferenceLine(
        id=event.preference_id,
        category=event.category,
        key=event.key,
        value=event.value,
        confidence=event.confidence,
        source=event.source,
        previous_value=event.previous_value,
        project=event.project,
        created_at=record.at_ms,
        updated_at=record.at_ms if event.updated_at is None else event.updated_at,
        origin=origin_line(record.origin),
    )
    return escaped(_ENCODER.encode(line))


def encode_lesson(record: Kept) -> bytes:
    """A live lesson as a line, likewise."""
    event = record.event
    assert isinstance(event, LessonKept)
    line = _LessonLine(
        id=event.lesson_id,
        situation=event.situation,
        mistake=event.mistake,
        correction=event.correction,
        project=event.project,
        created_at=record.at_ms,
        origin=origin_line(record.origin),
    )
    return escaped(_ENCODER.encode(line))


def encode_section(record: Kept) -> bytes:
    """A live section as a line, likewise."""
    event = record.event
    assert isinstance(event, SectionKept)
    line = _SectionLine(
        section=event.section,
        content=event.content,
        created_at=record.at_ms,
        updated_at=record.at_ms if event.updated_at is None else event.updated_at,
        origin=origin_line(record.origin),
    )
    return escaped(_ENCODER.encode(line))


def decode_preference(line: bytes) -> Record:
    """Read a line that was checked."""
    read = _PREFERENCES.decode(line)
    event = PreferenceKept(
        preference_id=read.id.upper(),
        category=read.category,
        key=read.key,
        value=read.value,
        # The store has no negative zero.
        confidence=abs(read.confidence),
        source=read.source,
        previous_value=read.previous_value,
        project=read.project,
        updated_at=None if read.updated_at == read.created_at else read.updated_at,
    )
    return Record(read.created_at, read.origin.origin, event)


def decode_lesson(line: bytes) -> Record:
    """Read a line that was checked."""
    read = _LESSONS.decode(line)
    event = LessonKept(
        lesson_id=read.id.upper(),
        situation=read.situation,
        mistake=read.mistake,
        correction=read.correction,
        project=read.project,
    )
    return Record(read.created_at, read.origin.origin, event)


def decode_section(line: bytes) -> Record:
    """Read a line that was checked."""
    read = _SECTIONS.decode(line)
    updated_at = None if read.updated_at == read.created_at else read.updated_at
    event = SectionKept(section=read.section, content=read.content, updated_at=updated_at)
    return Record(read.created_at, read.origin.origin, event)


def identify(record: Kept) -> bytes:
    """The identity of a live record: the same bytes that `check` gives of its line."""
    event = record.event
    if isinstance(event, PreferenceKept):
        return PREFERENCE + preference_name(event.project, event.category, event.key)
    if isinstance(event, LessonKept):
        return LESSON + lesson_name(event.project, event.situation, event.mistake, event.correction)
    assert isinstance(event, SectionKept)
    return SECTION + event.section.encode()


def stored_preference(connection: apsw.Connection, name: bytes) -> Kept | None:
    """The live preference of this identity, if it is one of a preference."""
    if not name.startswith(PREFERENCE):
        return None
    found = queries.preference_named(connection, name.removeprefix(PREFERENCE))
    return None if found is None else kept.preference(found)


def stored_lesson(connection: apsw.Connection, name: bytes) -> Kept | None:
    """The live lesson of this identity, likewise."""
    if not name.startswith(LESSON):
        return None
    found = queries.lesson_named(connection, name.removeprefix(LESSON))
    return None if found is None else kept.lesson(found)


def stored_section(connection: apsw.Connection, name: bytes) -> Kept | None:
    """The live section of this identity, likewise."""
    if not name.startswith(SECTION):
        return None
    found = queries.read_section(connection, name.removeprefix(SECTION).decode())
    return None if found is None else kept.section(found)


def borne_by_preferences(connection: apsw.Connection) -> Iterator[Borne]:
    """The ids of all preferences that are stored."""
    return (Borne(borne_id(found.id), PREFERENCE + found.name) for found in queries.preference_ids(connection))


def borne_by_lessons(connection: apsw.Connection) -> Iterator[Borne]:
    """The ids of all lessons that are stored."""
    return (Borne(borne_id(found.id), LESSON + found.name) for found in queries.lesson_ids(connection))


def says_the_same(before: Kept, record: Record) -> bool:
    """True if the file's record tells nothing that the stored one does not. A lesson of the same texts never does."""
    return all(getattr(before.event, name) == getattr(record.event, name) for name in TOLD[type(record.event)])


def refuse_more_sections(connection: apsw.Connection, count: int) -> None:
    """Invalid if the profile has no room for so many more sections of a person's own."""
    if queries.own_sections(connection) + count > PROFILE_SECTIONS_MAX:
        raise Invalid(
            f"with this the profile would have more than {PROFILE_SECTIONS_MAX} sections, which is as many as it can",
            field="section",
        )


def replacing(before: Kept, record: Record, sequence: int) -> Kept:
    """The file's record in the place of the stored one, whose id and number it takes over."""
    own = {
        name: getattr(before.event, name)
        for name in ("preference_id", "lesson_id", "number")
        if hasattr(before.event, name)
    }
    event: Event = msgspec.structs.replace(record.event, changed_sequence=sequence, **own)
    return Kept(before.sequence, record.at_ms, record.origin, event)


def numbered(event: Numbered, number: int) -> Numbered:
    """A record with this number, unless it has one."""
    return event if event.number is not None else msgspec.structs.replace(event, number=number)


PREFERENCES = RecordType(
    tag="preference",
    event=PreferenceKept,
    encode=encode_preference,
    check=check_preference,
    check_quickly=look_closely,
    decode=decode_preference,
    identify=identify,
    stored=stored_preference,
    is_same=says_the_same,
    replacing=replacing,
    borne=borne_by_preferences,
    numbered=numbered,
)
LESSONS = RecordType(
    tag="lesson",
    event=LessonKept,
    encode=encode_lesson,
    check=check_lesson,
    check_quickly=look_closely,
    decode=decode_lesson,
    identify=identify,
    stored=stored_lesson,
    is_same=says_the_same,
    replacing=replacing,
    borne=borne_by_lessons,
    numbered=numbered,
)
SECTIONS = RecordType(
    tag="profile",
    event=SectionKept,
    encode=encode_section,
    check=check_section,
    check_quickly=look_closely,
    decode=decode_section,
    identify=identify,
    stored=stored_section,
    is_same=says_the_same,
    replacing=replacing,
    refuse_more=refuse_more_sections,
)
RECORD_TYPES = (PREFERENCES, LESSONS, SECTIONS)
