"""What another program's file says of the user: the commands that take it in, and the rule by which.

    unknown                     stored, with the file's own time
    known, saying the same      same
    known, saying otherwise     updated if the file's is newer by its own time, else same: the store knows better
    forgotten here              stays_deleted, unless it is to be resurrected

A record is known by what makes it one here (model.py), whichever program it comes from. Rejected: a source for each, as
messages have it. Two programs that know the same preference know one thing.
"""

from collections.abc import Mapping
from typing import Annotated, Any

import apsw
from msgspec import UNSET
from pydantic import Field

from convmem.domain import Decided, Decider, Event, Stamp
from convmem.errors import Invalid
from convmem.inputs import Input
from convmem.limits import PROFILE_SECTIONS_MAX, TIME_MS_MAX
from convmem.memory import fields, queries
from convmem.memory.events import LessonSaved, PreferenceSaved, PreferenceStated, SectionWritten
from convmem.memory.model import (
    DISTILLED_SECTIONS,
    FIRST_CONFIDENCE,
    Category,
    Source,
    lesson_name,
    preference_name,
    section_name,
)

Project = Annotated[fields.Project | None, fields.ABSENT_IF_BLANK]
At = Annotated[int, Field(ge=0, le=TIME_MS_MAX)]
Confidence = Annotated[float, Field(ge=0, le=1)]


class Given(Input):
    """What all of them have: the file's own time, ms since the epoch, and whether what was forgotten comes back."""

    at: At | None = None
    resurrect: bool = False


class ImportPreference(Given):
    """Take in a preference."""

    category: Category
    key: fields.Key
    value: fields.Value
    confidence: Confidence = FIRST_CONFIDENCE
    source: Source = "explicit"
    project: Project = None


class ImportLesson(Given):
    """Take in a lesson."""

    situation: fields.LessonText
    mistake: fields.LessonText
    correction: fields.LessonText
    project: Project = None


class ImportSection(Given):
    """Take in a section of the profile."""

    section: fields.SectionName
    content: fields.Content


def import_preference(connection: apsw.Connection, command: ImportPreference, stamp: Stamp) -> Decided:
    """{outcome, id?}: see above."""
    known = queries.preference_of(connection, command.project, command.category, command.key)
    if known is not None:
        if command.value == known.value or not _is_newer(command, known.updated_at):
            return Decided({"outcome": "same", "id": known.preference_id})
        stated = PreferenceStated(
            number=known.number,
            value=command.value,
            confidence=UNSET if command.confidence == known.confidence else command.confidence,
            source=UNSET if command.source == known.source else command.source,
            timestamp=command.at,
        )
        return Decided({"outcome": "updated", "id": known.preference_id}, (stated,))
    saved = PreferenceSaved(
        preference_id=stamp.ulid,
        number=stamp.number,
        category=command.category,
        key=command.key,
        value=command.value,
        confidence=command.confidence,
        source=command.source,
        project=command.project,
        timestamp=command.at,
    )
    return _stored(connection, command, preference_name(command.project, command.category, command.key), saved, stamp)


def import_lesson(connection: apsw.Connection, command: ImportLesson, stamp: Stamp) -> Decided:
    """{outcome, id?}: see above."""
    texts = (command.situation, command.mistake, command.correction)
    known = queries.lesson_of(connection, command.project, *texts)
    if known is not None:
        return Decided({"outcome": "same", "id": known.lesson_id})
    saved = LessonSaved(
        lesson_id=stamp.ulid,
        number=stamp.number,
        situation=command.situation,
        mistake=command.mistake,
        correction=command.correction,
        project=command.project,
        timestamp=command.at,
    )
    return _stored(connection, command, lesson_name(command.project, *texts), saved, stamp)


def import_section(connection: apsw.Connection, command: ImportSection, stamp: Stamp) -> Decided:
    """{outcome}: see above. Invalid for a section that distill writes, and where there is no room for one more."""
    if command.section in DISTILLED_SECTIONS:
        raise Invalid("this section is made anew from what was captured", field="section")
    written = SectionWritten(section=command.section, content=command.content, timestamp=command.at)
    known = queries.read_section(connection, command.section)
    if known is not None:
        if command.content == known.content or not _is_newer(command, known.updated_at):
            return Decided({"outcome": "same"})
        return Decided({"outcome": "updated"}, (written,))
    if queries.own_sections(connection) >= PROFILE_SECTIONS_MAX:
        raise Invalid(f"the profile has {PROFILE_SECTIONS_MAX} sections, which is as many as it can", field="section")
    return _stored(connection, command, section_name(command.section), written, stamp)


def _is_newer(command: Given, known_at: int) -> bool:
    return command.at is not None and command.at > known_at


def _stored(connection: apsw.Connection, command: Given, name: bytes, event: Event, stamp: Stamp) -> Decided:
    """A record that is not there: new, or gone and to stay so."""
    if not command.resurrect and queries.is_forgotten(connection, name):
        return Decided({"outcome": "stays_deleted"})
    ids = {} if isinstance(event, SectionWritten) else {"id": stamp.ulid}
    return Decided({"outcome": "stored", **ids}, (event,))


DECIDERS: Mapping[type[Any], Decider] = {
    ImportPreference: import_preference,
    ImportLesson: import_lesson,
    ImportSection: import_section,
}
