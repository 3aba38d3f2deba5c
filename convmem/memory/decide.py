"""The rules of memory: what a command may do to what is there, as facts or as a refusal.

Deciding changes nothing and knows neither clock nor dice: the stamp brings time, place, a fresh id and a fresh number.
An answer is the receipt: it is given to the caller only once the events are on the disk.

Saying something again is a statement too: it makes a preference surer and newer, so it is written. A lesson or a
section that is there already is not: nothing about it would change.
"""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import apsw
import msgspec

from convmem.domain import Decided, Decider, Event, Stamp
from convmem.errors import Conflict, Invalid, NotFound
from convmem.limits import FORGOTTEN_PREVIEW_CODE_POINTS, INT64_MAX, PROFILE_SECTIONS_MAX
from convmem.memory import imports, queries
from convmem.memory.events import (
    LessonForgotten,
    LessonSaved,
    PreferenceForgotten,
    PreferenceSaved,
    PreferenceStated,
    SectionDeleted,
    SectionWritten,
)
from convmem.memory.inputs import DeleteSection, Forget, Remember, SaveLesson, WriteSection
from convmem.memory.model import DISTILLED_SECTIONS, FIRST_CONFIDENCE, Lesson, Preference, Source, Type, next_confidence
from convmem.messages import queries as messages
from convmem.messages.events import MessageDeleted
from convmem.messages.model import Message, origin_facts
from convmem.quoting import cut

# What a statement tells and a later one may change, in the order it is answered.
STATED = ("value", "confidence", "source")


def remember(connection: apsw.Connection, command: Remember, stamp: Stamp) -> Decided:
    """A new preference, a surer one, or one that changed its value and begins anew."""
    place = stamp.place
    known = queries.preference_of(connection, command.project, command.category, command.key)
    if known is None:
        saved = Preference(
            preference_id=stamp.ulid,
            number=stamp.number,
            category=command.category,
            key=command.key,
            value=command.value,
            confidence=FIRST_CONFIDENCE,
            source=command.source or "explicit",
            previous_value=None,
            project=command.project,
            created_at=place.at_ms,
            updated_at=place.at_ms,
            sequence=place.sequence,
            changed_sequence=place.sequence,
            origin=place.origin,
        )
        event = PreferenceSaved(
            preference_id=saved.preference_id,
            number=saved.number,
            category=saved.category,
            key=saved.key,
            value=saved.value,
            confidence=saved.confidence,
            source=saved.source,
            project=saved.project,
        )
        return Decided(_stated(saved, "saved", STATED), (event,))
    is_changed = command.value != known.value
    stated = msgspec.structs.replace(
        known,
        value=command.value,
        confidence=FIRST_CONFIDENCE if is_changed else next_confidence(known.confidence),
        source=_source(command.source, known.source, is_changed=is_changed),
        previous_value=known.value if is_changed else known.previous_value,
        updated_at=max(place.at_ms, known.updated_at),
        changed_sequence=place.sequence,
    )
    changes = {name: value for name in STATED if (value := getattr(stated, name)) != getattr(known, name)}
    again = PreferenceStated(number=known.number, **changes)
    return Decided(_stated(stated, "changed" if is_changed else "repeated", tuple(changes)), (again,))


def _source(given: Source | None, known: Source, *, is_changed: bool) -> Source:
    """Whoever says something else corrects what was there, unless it only infers it."""
    if is_changed:
        return "inferred" if given == "inferred" else "corrected"
    return given or known


def _stated(preference: Preference, outcome: str, changed: Sequence[str]) -> dict[str, Any]:
    answer = {
        "id": preference.preference_id,
        "number": preference.number,
        "outcome": outcome,
        "changed": list(changed),
        "category": preference.category,
        "key": preference.key,
        "value": preference.value,
        "confidence": preference.confidence,
        "source": preference.source,
        "previous_value": preference.previous_value,
        "project": preference.project,
        "updated_at": preference.updated_at,
        "sequence": str(preference.changed_sequence),
        "sha256": _sha256(preference.value.encode()),
    }
    return _without_absent(answer)


def save_lesson(connection: apsw.Connection, command: SaveLesson, stamp: Stamp) -> Decided:
    """A new lesson; or the one that says just this already, as it was answered then."""
    texts = {"situation": command.situation, "mistake": command.mistake, "correction": command.correction}
    known = queries.lesson_of(connection, command.project, **texts)
    if known is not None:
        return Decided({**_learned(known), "replayed": True})
    place = stamp.place
    saved = Lesson(
        lesson_id=stamp.ulid,
        number=stamp.number,
        project=command.project,
        created_at=place.at_ms,
        sequence=place.sequence,
        changed_sequence=place.sequence,
        origin=place.origin,
        **texts,
    )
    event = LessonSaved(
        lesson_id=saved.lesson_id,
        number=saved.number,
        situation=saved.situation,
        mistake=saved.mistake,
        correction=saved.correction,
        project=saved.project,
    )
    return Decided(_learned(saved), (event,))


def _learned(lesson: Lesson) -> dict[str, Any]:
    texts = {"situation": lesson.situation, "mistake": lesson.mistake, "correction": lesson.correction}
    answer = {
        "id": lesson.lesson_id,
        "number": lesson.number,
        "project": lesson.project,
        "created_at": lesson.created_at,
        "sequence": str(lesson.changed_sequence),
        "sha256": _sha256(msgspec.json.encode(texts, order="sorted")),
    }
    return _without_absent(answer)


def forget(connection: apsw.Connection, command: Forget, stamp: Stamp) -> Decided:
    """What bears this number or id is gone; if nothing does, that is an answer too."""
    number = command.number
    found = _identified(connection, command.target_id) if number is None else _numbered(connection, number)
    if found is None:
        return Decided({"removed": []})
    kind, event, facts = found
    if command.type not in (None, kind):
        article = "an" if kind == "interaction" else "a"
        raise Invalid(f"{command.target_id} is {article} {kind}, nothing was removed", field="type", type=kind)
    removed = _without_absent({"type": kind, **facts})
    return Decided({"removed": [removed], "sequence": str(stamp.place.sequence)}, (event,))


Found = tuple[Type, Event, dict[str, Any]]


def _numbered(connection: apsw.Connection, number: int) -> Found | None:
    if number > INT64_MAX:
        return None
    own = queries.by_number(connection, number)
    return _own(own) if own is not None else _captured(messages.captured_by_number(connection, number))


def _identified(connection: apsw.Connection, record_id: str) -> Found | None:
    own = queries.by_id(connection, record_id)
    if own is not None:
        return _own(own)
    message = messages.read_message(connection, record_id)
    if message is not None and message.capture is None:
        raise NotFound(
            "this is the id of a message of a conversation, which delete_message takes away",
            field="target_id",
            message_id=message.message_id,
        )
    return _captured(message)


def _own(record: Preference | Lesson) -> Found:
    if isinstance(record, Preference):
        facts = {
            "id": record.preference_id,
            "number": record.number,
            "project": record.project,
            "category": record.category,
            "key": record.key,
            **_preview(record.value),
            "at": record.updated_at,
            "origin": origin_facts(record.origin),
        }
        return "preference", PreferenceForgotten(number=record.number), facts
    facts = {
        "id": record.lesson_id,
        "number": record.number,
        "project": record.project,
        **_preview(record.situation),
        "at": record.created_at,
        "origin": origin_facts(record.origin),
    }
    return "lesson", LessonForgotten(number=record.number), facts


def _captured(message: Message | None) -> Found | None:
    if message is None:
        return None
    assert message.capture is not None
    facts = {
        "id": message.message_id,
        "number": message.number,
        "project": message.metadata.project,
        "kind": message.capture.kind,
        "session_id": message.session_id,
        **_preview(message.content),
        "at": message.timestamp,
        "origin": origin_facts(message.origin),
    }
    return "interaction", MessageDeleted(message_id=message.message_id), facts


def _preview(text: str) -> dict[str, Any]:
    """Enough of a text to know it by."""
    return {"preview": cut(text, FORGOTTEN_PREVIEW_CODE_POINTS), "total_bytes": len(text.encode())}


def write_section(connection: apsw.Connection, command: WriteSection, stamp: Stamp) -> Decided:
    """The section reads so from now on; if it does already, nothing is written."""
    known = queries.read_section(connection, command.section)
    if command.replaces not in (None, _sha256(b"" if known is None else known.content.encode())):
        raise Conflict("the section was changed meanwhile; nothing was written", field="replaces")
    is_own = command.section not in DISTILLED_SECTIONS
    if known is None and is_own and queries.own_sections(connection) >= PROFILE_SECTIONS_MAX:
        raise Invalid(
            f"the profile has {PROFILE_SECTIONS_MAX} sections, which is as many as it can; delete one first",
            field="section",
        )
    is_changed = known is None or command.content != known.content
    updated_at = stamp.place.at_ms
    sequence = stamp.place.sequence
    if known is not None:
        updated_at = max(updated_at, known.updated_at) if is_changed else known.updated_at
        sequence = sequence if is_changed else known.changed_sequence
    answer = {
        "section": command.section,
        "changed": ["content"] if is_changed else [],
        "updated_at": updated_at,
        "sequence": str(sequence),
        "sha256": _sha256(command.content.encode()),
    }
    event = SectionWritten(section=command.section, content=command.content)
    return Decided(answer, (event,) if is_changed else ())


def delete_section(connection: apsw.Connection, command: DeleteSection, stamp: Stamp) -> Decided:
    """The section is gone, if it is there."""
    if queries.read_section(connection, command.section) is None:
        raise NotFound("the profile has no section of this name", field="section")
    answer = {"section": command.section, "deleted": True, "sequence": str(stamp.place.sequence)}
    return Decided(answer, (SectionDeleted(section=command.section),))


def _without_absent(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


DECIDERS: Mapping[type[Any], Decider] = {
    Remember: remember,
    SaveLesson: save_lesson,
    Forget: forget,
    WriteSection: write_section,
    DeleteSection: delete_section,
    **imports.DECIDERS,
}
