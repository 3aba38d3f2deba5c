"""A live record to its line and back; what meets a store; what stands in the place of another."""

import json
from typing import Any

import msgspec
import pytest

from convmem.domain import Kept, Origin, Record
from convmem.errors import Conflict
from convmem.memory import kept, lines, queries
from convmem.memory.events import LessonKept, PreferenceKept, SectionKept
from convmem.transfer.intake import Plan
from tests.support.filed import written
from tests.support.remembered import (
    Remembered,
    exported,
    folded_from,
    lesson_record,
    preference_record,
    section_record,
    taken,
    violations,
)

ID, THEIR_ID = "01BX5ZZKBK000000000000000A", "01BX5ZZKBK000000000000000B"
LAPTOP = Origin("laptop", "http", "agent/1")
PREFERENCE = Kept(
    7,
    1_000,
    LAPTOP,
    PreferenceKept(
        preference_id=ID,
        category="other",
        key="日本\u2028",
        value="🟡\0\x7f",
        confidence=0.7,
        source="inferred",
        number=3,
        previous_value="old\u0085",
        project="p",
        updated_at=2_000,
        changed_sequence=9,
    ),
)
BARE = Kept(
    7,
    1_000,
    Origin("local", ""),
    PreferenceKept(preference_id=ID, category="other", key="k", value="v", confidence=1.0, source="explicit", number=1),
)
LESSON = Kept(
    8,
    1_000,
    LAPTOP,
    LessonKept(
        lesson_id=ID,
        situation="s\u2029",
        mistake="m",
        correction="c\0",
        number=4,
        project="p",
        changed_sequence=9,
    ),
)
SECTION = Kept(
    9, 1_000, LAPTOP, SectionKept(section="goals", content="a\nb\x9f", updated_at=2_000, changed_sequence=10)
)
EACH = [
    (lines.PREFERENCES, PREFERENCE),
    (lines.PREFERENCES, BARE),
    (lines.LESSONS, LESSON),
    (lines.SECTIONS, SECTION),
]


@pytest.mark.parametrize(("kind", "record"), EACH)
def test_a_line_read_back_is_the_same_record_but_for_where_it_stood(kind: Any, record: Kept):
    line = kind.encode(record)
    plain = kind.numbered(msgspec.structs.replace(record.event, changed_sequence=None), None)
    assert kind.decode(line) == Record(record.at_ms, record.origin, plain)
    named = kind.check(json.loads(line))
    assert named.identity == kind.identify(record)
    assert named.references == ()
    assert json.loads(line)["type"] == kind.tag
    assert not {"number", "sequence", "changed_sequence"} & set(json.loads(line))


@pytest.mark.parametrize(("kind", "record"), EACH)
def test_a_line_is_one_line_for_every_reader(kind: Any, record: Kept):
    assert len(kind.encode(record).decode().splitlines()) == 1


def test_lines_of_others_are_read_by_the_same_rules():
    theirs = preference_record(id=ID.lower(), confidence=-0.0, project=None)
    event: Any = lines.PREFERENCES.decode(msgspec.json.encode(theirs)).event
    assert (event.preference_id, event.project, event.previous_value) == (ID, None, "tabs")
    assert str(event.confidence) == "0.0"
    whole: Any = lines.PREFERENCES.decode(msgspec.json.encode(preference_record(confidence=1))).event
    assert isinstance(whole.confidence, float)
    lesson: Any = lines.LESSONS.decode(msgspec.json.encode(lesson_record(id=ID.lower()))).event
    assert lesson.lesson_id == ID


@pytest.mark.parametrize(("kind", "record"), EACH)
def test_the_record_that_replaces_another_keeps_its_place_its_id_and_its_number(kind: Any, record: Kept):
    theirs = kind.decode(kind.encode(record))._replace(at_ms=500, origin=Origin("phone", "http"))
    own = {name for name in ("preference_id", "lesson_id") if hasattr(theirs.event, name)}
    theirs = theirs._replace(event=msgspec.structs.replace(theirs.event, **dict.fromkeys(own, THEIR_ID)))
    replaced = kind.replacing(record, theirs, 20)
    assert (replaced.sequence, replaced.at_ms, replaced.origin) == (record.sequence, 500, theirs.origin)
    assert replaced.event == msgspec.structs.replace(record.event, changed_sequence=20)


def test_null_is_absent_wherever_a_field_may_be_absent():
    origin = {"device": "laptop", "transport": "http"}
    absent = preference_record(origin=origin)
    nulled = absent | {"project": None, "previous_value": None, "origin": origin | {"client": None}}
    lines.PREFERENCES.check(nulled)
    absent.pop("project"), absent.pop("previous_value")
    assert lines.PREFERENCES.decode(msgspec.json.encode(nulled)) == lines.PREFERENCES.decode(
        msgspec.json.encode(absent)
    )
    nulled = lesson_record(project=None)
    lines.LESSONS.check(nulled)
    assert lines.LESSONS.decode(msgspec.json.encode(nulled)).event.project is None  # type: ignore[attr-defined]


def test_a_number_is_given_once_and_taken_away_for_a_file():
    for kind, record in EACH[:3]:
        plain = kind.numbered(record.event, None)
        assert plain.number is None
        assert kind.numbered(plain, 12).number == 12
        assert kind.numbered(record.event, 12) is record.event
    assert lines.SECTIONS.numbered(SECTION.event, 12) is SECTION.event


def test_a_stored_record_is_found_by_its_identity_and_by_no_other():
    remembered = Remembered()
    remembered.remember(project="p")
    remembered.save_lesson()
    remembered.write_section("goals", "x")
    connection = remembered.connection
    records = list(kept.live(connection))
    for kind, record in zip(lines.RECORD_TYPES, records, strict=True):
        name = kind.identify(record)
        assert kind.stored(connection, name) == record
        assert kind.stored(connection, name + b"x") is None
        others = [other for other in records if other is not record]
        assert [kind.stored(connection, kind.identify(other)) for other in others] == [None, None]
        assert kind.stored(connection, b"m" + name[1:]) is None


def test_a_file_comes_into_an_empty_store_with_its_ids_and_fresh_numbers():
    file = written([lesson_record(), section_record(), preference_record(id=THEIR_ID)])
    plan, records = taken(file, through=40, last=6)
    assert plan == Plan(new=3, unchanged=0, overwritten=0)
    connection = folded_from(records)
    assert violations(connection) == []
    (lesson,), (preference,) = queries.lessons(connection), queries.preferences(connection)
    assert (lesson.lesson_id, lesson.number, lesson.sequence) == (ID, 7, 41)
    assert (preference.preference_id, preference.number, preference.sequence) == (THEIR_ID, 8, 43)
    assert [json.loads(line) for line in exported(connection).splitlines()[1:]] == [
        json.loads(line) for line in file.splitlines()[1:]
    ]


def test_what_the_store_knows_is_left_refused_or_replaced():
    remembered = Remembered()
    remembered.remember(project="p")
    remembered.save_lesson(project="p")
    remembered.write_section("goals", "mine")
    own = exported(remembered.connection)
    assert taken(own, remembered.connection)[0] == Plan(new=0, unchanged=3, overwritten=0)
    theirs = written([preference_record(value="tabs"), section_record(content="theirs")])
    with pytest.raises(Conflict):
        taken(theirs, remembered.connection)
    plan, records = taken(theirs, remembered.connection, "overwrite", through=3, last=2)
    assert plan == Plan(new=0, unchanged=0, overwritten=2)
    connection = folded_from(records)
    assert violations(connection) == []
    (preference,), (section,) = queries.preferences(connection), queries.sections(connection)
    before = queries.read_preference(remembered.connection, 1)
    assert before is not None
    assert (preference.value, preference.number, preference.preference_id) == ("tabs", 1, before.preference_id)
    assert (preference.sequence, preference.changed_sequence, preference.origin.device) == (1, 3, "laptop")
    assert (section.content, section.sequence, section.changed_sequence) == ("theirs", 3, 3)
    assert taken(theirs, connection, "overwrite", through=3, last=2)[0] == Plan(new=0, unchanged=2, overwritten=0), (
        "what is known under another id is known"
    )


def test_a_record_stands_in_a_file_once():
    for twins in (
        [preference_record(), preference_record(id=THEIR_ID, value="x")],
        [lesson_record(), lesson_record(id=THEIR_ID)],
        [section_record(), section_record(content="x")],
    ):
        with pytest.raises(Conflict, match="line 3"):
            taken(written(twins))


def test_one_id_on_two_records_of_others_is_no_obstacle():
    both = written([preference_record(), preference_record(key="other"), lesson_record()])
    connection = folded_from(taken(both)[1])
    assert violations(connection) == []
    assert queries.totals(connection) == (2, 1, 0)
    assert (
        exported(connection).splitlines()[1:] == exported(folded_from(taken(exported(connection))[1])).splitlines()[1:]
    )
