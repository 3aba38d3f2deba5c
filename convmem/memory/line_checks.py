"""A stranger's line of a file that claims to be a record of memory: every field is checked before anything is changed.

The rules are those of arguments (fields.py) without their leniency: a file was written by a program. There are few
records of memory, so each line is looked at closely.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from convmem.domain import Named
from convmem.errors import Invalid
from convmem.inputs import Input, exact
from convmem.memory import fields
from convmem.memory.model import DISTILLED_SECTIONS, Category, Source, lesson_name, preference_name
from convmem.messages.model import packed
from convmem.record_lines import OriginRead, Time

# What an identity begins with.
PREFERENCE, LESSON, SECTION = b"p", b"l", b"s"
# What that of a message does. Ids stand beside those of messages, so that no two records of any kind bear the same.
MESSAGE = b"m"


class _TimesRead(Input):
    """When a record that can change was created and last changed."""

    created_at: Time
    updated_at: Time

    @model_validator(mode="after")
    def _rise(self) -> Self:
        if self.updated_at < self.created_at:
            raise Invalid("updated_at must not be before created_at", field="updated_at")
        return self


class PreferenceRead(_TimesRead):
    """A line that says what a preference is."""

    type: Literal["preference"]
    id: fields.RecordId
    category: Category
    key: fields.Key
    value: fields.Value
    confidence: Annotated[float, Field(ge=0, le=1)]
    source: Source
    previous_value: fields.Value | None = None
    project: fields.Project | None = None
    origin: OriginRead


class LessonRead(Input):
    """A line that says what a lesson is."""

    type: Literal["lesson"]
    id: fields.RecordId
    situation: fields.LessonText
    mistake: fields.LessonText
    correction: fields.LessonText
    project: fields.Project | None = None
    created_at: Time
    origin: OriginRead


class SectionRead(_TimesRead):
    """A line that says what a section of the profile is."""

    type: Literal["profile"]
    section: fields.SectionName
    content: fields.Content
    origin: OriginRead


def check_preference(value: Mapping[str, Any]) -> Named:
    """Check every field of a line; Invalid with `field` for the first that is wrong."""
    given = exact(PreferenceRead, value)
    return Named(PREFERENCE + preference_name(given.project, given.category, given.key), ids=(borne_id(given.id),))


def check_lesson(value: Mapping[str, Any]) -> Named:
    """Check every field of a line, likewise."""
    given = exact(LessonRead, value)
    name = lesson_name(given.project, given.situation, given.mistake, given.correction)
    return Named(LESSON + name, ids=(borne_id(given.id),))


def check_section(value: Mapping[str, Any]) -> Named:
    """Check every field of a line, likewise."""
    section = exact(SectionRead, value).section
    return Named(SECTION + section.encode(), is_limited=section not in DISTILLED_SECTIONS)


def borne_id(record_id: str) -> bytes:
    """The id of a preference or lesson, as the identity of a message of this id."""
    return MESSAGE + packed(record_id)


def look_closely(line: bytes) -> None:
    """What a quick look says of any line: nothing."""
