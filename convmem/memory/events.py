"""What has happened to memory; and, for the state that a compacted log opens with, what is.

The fields carry only what the entry itself does not: sequence, time and origin stand in the entry; a time stands beside
them where it is another one, that of the file of another program. A statement holds
only what it changed. What a preference said before stands in the log already, so no event repeats it. Later events name
a record by its number, which is the store's own; an id may come from a file. Fields are
only ever added, each with a default that means what entries written before it meant.
"""

from msgspec import UNSET, UnsetType

from convmem.domain import Event
from convmem.memory.model import FIRST_CONFIDENCE, Category, Source


class PreferenceSaved(Event, frozen=True, kw_only=True, omit_defaults=True, tag="preference_saved"):
    """Something was stated for the first time."""

    preference_id: str
    number: int
    category: Category
    key: str
    value: str
    confidence: float = FIRST_CONFIDENCE
    source: Source = "explicit"
    project: str | None = None
    timestamp: int | None = None


class PreferenceStated(Event, frozen=True, kw_only=True, omit_defaults=True, tag="preference_stated"):
    """It was stated again, the same way or another. A new value makes the one before it the previous one."""

    number: int
    value: str | UnsetType = UNSET
    confidence: float | UnsetType = UNSET
    source: Source | UnsetType = UNSET
    timestamp: int | None = None


class PreferenceForgotten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="preference_forgotten"):
    """A preference is gone."""

    number: int


class LessonSaved(Event, frozen=True, kw_only=True, omit_defaults=True, tag="lesson_saved"):
    """Something was learned."""

    lesson_id: str
    number: int
    situation: str
    mistake: str
    correction: str
    project: str | None = None
    timestamp: int | None = None


class LessonForgotten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="lesson_forgotten"):
    """A lesson is gone."""

    number: int


class SectionWritten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="section_written"):
    """A section of the profile reads so from now on."""

    section: str
    content: str
    timestamp: int | None = None


class SectionDeleted(Event, frozen=True, kw_only=True, omit_defaults=True, tag="section_deleted"):
    """A section of the profile is gone."""

    section: str


class PreferenceKept(Event, frozen=True, kw_only=True, omit_defaults=True, tag="preference_kept"):
    """A live preference, whole, as it stood when its log was compacted, or as a file brought it.

    Its entry says its sequence, when it was created, and the origin of its last statement. `updated_at` and
    `changed_sequence` are left out where they are the entry's own. Only what a file holds has no number.
    """

    preference_id: str
    category: Category
    key: str
    value: str
    confidence: float
    source: Source
    number: int | None = None
    previous_value: str | None = None
    project: str | None = None
    updated_at: int | None = None
    changed_sequence: int | None = None


class LessonKept(Event, frozen=True, kw_only=True, omit_defaults=True, tag="lesson_kept"):
    """A live lesson, whole, likewise."""

    lesson_id: str
    situation: str
    mistake: str
    correction: str
    number: int | None = None
    project: str | None = None
    changed_sequence: int | None = None


class SectionKept(Event, frozen=True, kw_only=True, omit_defaults=True, tag="section_kept"):
    """A live section, whole, likewise; its entry says the origin of its last writing."""

    section: str
    content: str
    updated_at: int | None = None
    changed_sequence: int | None = None


class RecordForgotten(Event, frozen=True, kw_only=True, omit_defaults=True, tag="record_forgotten"):
    """A record of this name (model.py) is gone, and its name is known: imported from a file it stays away."""

    name: bytes
