"""The nouns of memory: a preference, a lesson, a section of the profile, and what each is told apart by.

Each is valid because it exists: inputs have checked it on the way in, the log holds nothing else. A number is for
people and models to name a record by; it is local to its store, unlike the id. What makes two records one is a name: a
hash of what must be unique together, so that no text of a thousand letters stands in an index of the tables, and a
project that is not given is unlike every other.
"""

import hashlib
from typing import Literal, get_args

import msgspec

from convmem.domain import Origin
from convmem.text import fold

Category = Literal["work_style", "coding_pref", "language", "domain", "other"]
Source = Literal["explicit", "corrected", "inferred"]
# What `forget` names a record by; an interaction is a message that a hook has captured.
Type = Literal["preference", "lesson", "interaction"]
# What a hook can have captured.
InteractionKind = Literal["prompt", "tool_call", "error"]
CATEGORIES: tuple[Category, ...] = get_args(Category)
SOURCES: tuple[Source, ...] = get_args(Source)
TYPES: tuple[Type, ...] = get_args(Type)
INTERACTION_KINDS: tuple[InteractionKind, ...] = get_args(InteractionKind)

# Sections that distill writes; the others are a person's own.
USAGE_STATS, TOPICS = DISTILLED_SECTIONS = ("usage_stats", "topics")

# What a first statement is worth, and what each repetition adds, in tenths: tenths add up exactly.
FIRST_TENTHS, REPEATED_TENTHS, CERTAIN_TENTHS = 5, 1, 10
FIRST_CONFIDENCE = FIRST_TENTHS / 10
NAME_BYTES = 16


def next_confidence(known: float) -> float:
    """What a statement is worth when it is made again."""
    return min(CERTAIN_TENTHS, round(known * 10) + REPEATED_TENTHS) / 10


def preference_name(project: str | None, category: str, key: str) -> bytes:
    """What a preference is told apart by: NAME_BYTES of SHA-256."""
    return _name((project, category, key))


def lesson_name(project: str | None, situation: str, mistake: str, correction: str) -> bytes:
    """What a lesson is told apart by: NAME_BYTES of SHA-256."""
    return _name((project, situation, mistake, correction))


def section_name(section: str) -> bytes:
    """What a section is told apart by, among all names of memory: NAME_BYTES of SHA-256."""
    return _name(("section", section))


def _name(parts: tuple[str | None, ...]) -> bytes:
    return hashlib.sha256(msgspec.json.encode(parts)).digest()[:NAME_BYTES]


def folded_text(*texts: str) -> str:
    """What the search compares of a record: its texts folded one by one, joined with U+0000."""
    return "\0".join(map(fold, texts))


class Preference(msgspec.Struct, frozen=True, kw_only=True):
    """What the user prefers. Unique by project, category and key.

    Times are ms since the Unix epoch, UTC. `sequence` is that of the entry that created it, `changed_sequence` that of
    the entry that stated it last, from where its `origin` is.
    """

    preference_id: str
    number: int
    category: Category
    key: str
    value: str
    confidence: float
    source: Source
    previous_value: str | None
    project: str | None
    created_at: int
    updated_at: int
    sequence: int
    changed_sequence: int
    origin: Origin


class Lesson(msgspec.Struct, frozen=True, kw_only=True):
    """What was learned from a mistake. Unique by project and its three texts.

    `changed_sequence` is `sequence` but for one that a file has replaced.
    """

    lesson_id: str
    number: int
    situation: str
    mistake: str
    correction: str
    project: str | None
    created_at: int
    sequence: int
    changed_sequence: int
    origin: Origin


class Section(msgspec.Struct, frozen=True, kw_only=True):
    """A part of the profile, by name. `origin` is that of its last writing."""

    section: str
    content: str
    created_at: int
    updated_at: int
    sequence: int
    changed_sequence: int
    origin: Origin
