"""A live record to its line and back; what meets a store; what stands in the place of another."""

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from convmem.domain import Kept, Origin, Record
from convmem.errors import Conflict, Invalid, NotFound
from convmem.limits import PROFILE_SECTIONS_MAX
from convmem.memory import kept, lines, queries
from convmem.memory.events import LessonKept, PreferenceKept, SectionKept
from convmem.memory.model import DISTILLED_SECTIONS
from convmem.transfer.intake import POLICIES, Plan
from tests.support.filed import ULIDS, message, written
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
    nowhere = dict.fromkeys({"changed_sequence", "number"} & set(record.event.__struct_fields__))
    assert kind.decode(line) == Record(record.at_ms, record.origin, msgspec.structs.replace(record.event, **nowhere))
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


def test_a_number_is_given_once():
    for kind, record in EACH[:3]:
        assert kind.numbered(kind.decode(kind.encode(record)).event, 12).number == 12
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


OF_EACH_KIND: list[Callable[..., dict[str, Any]]] = [
    lambda record_id: preference_record(id=record_id),
    lambda record_id: preference_record(id=record_id, key="other"),
    lambda record_id: lesson_record(id=record_id),
    lambda record_id: lesson_record(id=record_id, mistake="other"),
    lambda record_id: message(0, message_id=record_id),
]
TWO_OF_THEM = [
    pytest.param(first, second, id=f"{place} {other}")
    for place, first in enumerate(OF_EACH_KIND)
    for other, second in enumerate(OF_EACH_KIND)
    if place != other
]


@pytest.mark.parametrize(("first", "second"), TWO_OF_THEM)
@pytest.mark.parametrize("policy", POLICIES)
def test_no_two_records_of_a_file_bear_one_id(first: Any, second: Any, policy: Any):
    between, behind = message(1), [message(2), lesson_record(id=ULIDS[3], mistake="third")]
    with pytest.raises(Conflict) as refusal:
        taken(written([first(ID), between, second(ID.lower()), *behind]), policy=policy)
    assert refusal.value.details == {"line": 4, "first_line": 2}
    assert refusal.value.message == "line 4: the record in line 2 bears the same id"
    assert taken(written([first(ID), between, second(ULIDS[9]), *behind]), policy=policy)[0].new == 5


@pytest.mark.parametrize(("stored", "brought"), TWO_OF_THEM)
@pytest.mark.parametrize("policy", POLICIES)
def test_no_record_of_a_file_bears_the_id_of_another_one_in_the_store(stored: Any, brought: Any, policy: Any):
    connection = folded_from(taken(written([stored(ID)]))[1])
    file = written([message(1), brought(ID), lesson_record(id=ULIDS[3], mistake="third")])
    with pytest.raises(Conflict) as refusal:
        taken(file, connection, policy, through=1, last=1)
    assert refusal.value.details == {"line": 3}
    plan, records = taken(file.replace(ID.encode(), ULIDS[9].encode()), connection, policy, through=1, last=1)
    assert plan == Plan(new=3, unchanged=0, overwritten=0)
    assert violations(folded_from(records)) == []


def test_what_the_store_knows_keeps_its_own_id_whichever_the_file_gives_it():
    connection = folded_from(taken(written([preference_record(), lesson_record(id=ULIDS[3])]))[1])
    swapped = [preference_record(id=ULIDS[3]), lesson_record(id=ID)]
    assert taken(written(swapped), connection, through=2, last=2)[0] == Plan(new=0, unchanged=2, overwritten=0)
    swapped[0]["value"] = "theirs"
    plan, records = taken(written(swapped), connection, "overwrite", through=2, last=2)
    assert plan == Plan(new=0, unchanged=1, overwritten=1)
    found = folded_from(records)
    assert {one.preference_id for one in queries.preferences(found)} == {ID}
    assert {one.lesson_id for one in queries.lessons(found)} == {ULIDS[3]}


def test_an_id_that_is_no_messages_is_nothing_that_a_message_could_point_at():
    pointing = message(1, metadata={"source_message_ids": [ID]})
    with pytest.raises(NotFound) as refusal:
        taken(written([preference_record(), pointing]))
    assert refusal.value.details["line"] == 3


ELSEWHERE = {"created_at": 5, "origin": {"device": "phone", "transport": "stdio"}}


@pytest.mark.parametrize(
    ("record", "same", "others"),
    [
        (
            preference_record(),
            {"id": THEIR_ID, "updated_at": 9, **ELSEWHERE},
            [{"value": "tabs"}, {"confidence": 0.7}, {"source": "inferred"}, {"previous_value": None}],
        ),
        (lesson_record(), {"id": THEIR_ID, **ELSEWHERE}, []),
        (section_record(), {"updated_at": 9, **ELSEWHERE}, [{"content": "ship it "}]),
    ],
)
def test_a_record_is_another_one_by_what_it_tells_alone(
    record: dict[str, Any], same: dict[str, Any], others: list[dict[str, Any]]
):
    connection = folded_from(taken(written([record]))[1])
    before = exported(connection)
    for policy in POLICIES:
        plan, records = taken(written([record | same]), connection, policy, through=1, last=1)
        assert plan == Plan(new=0, unchanged=1, overwritten=0)
        assert exported(folded_from(records)) == before, "time, origin and id stay those of the store"
    for other in others:
        with pytest.raises(Conflict) as refusal:
            taken(written([record | other]), connection)
        assert refusal.value.details["line"] == 2
        assert taken(written([record | other]), connection, "overwrite", 1, 1)[0].overwritten == 1


def test_what_every_kind_tells_is_all_that_it_is_not_known_by():
    known_by = {"project", "category", "key", "situation", "mistake", "correction", "section"}
    nothing_new = {"preference_id", "lesson_id", "number", "updated_at", "changed_sequence"}
    assert set(lines.TOLD) == {kind.event for kind in lines.RECORD_TYPES}
    for event, told in lines.TOLD.items():
        assert set(told) == set(event.__struct_fields__) - known_by - nothing_new


def sections(*numbers: int) -> list[dict[str, Any]]:
    return [section_record(section=f"own_{number}") for number in numbers]


DISTILLED = [section_record(section=section) for section in DISTILLED_SECTIONS]


def test_a_file_fills_the_profile_and_no_more():
    full = sections(*range(PROFILE_SECTIONS_MAX))
    connection = folded_from(taken(written([*DISTILLED, *full]))[1])
    assert queries.own_sections(connection) == PROFILE_SECTIONS_MAX
    with pytest.raises(Invalid, match=f"more than {PROFILE_SECTIONS_MAX} sections") as refusal:
        taken(written([message(0), *full[:9], *DISTILLED, *full[9:], *sections(98, 99)]))
    assert refusal.value.details == {"line": 2 + 1 + len(DISTILLED) + PROFILE_SECTIONS_MAX, "field": "section"}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_file_and_the_store_share_the_room_of_the_profile(policy: Any):
    remembered = Remembered()
    for number in range(PROFILE_SECTIONS_MAX - 2):
        remembered.write_section(f"own_{number}", "ship it")
    remembered.write_section(DISTILLED_SECTIONS[0], "counted")
    connection, through = remembered.connection, remembered.sequence
    known = sections(*range(20))
    plan, records = taken(written([*known, DISTILLED[1], *sections(97, 98)]), connection, policy, through=through)
    assert plan == Plan(new=3, unchanged=20, overwritten=0)
    assert queries.own_sections(folded_from(records)) == PROFILE_SECTIONS_MAX
    with pytest.raises(Invalid) as refusal:
        taken(written([*known, DISTILLED[1], *sections(97, 98, 99)]), connection, policy, through=through)
    assert refusal.value.details == {"line": 25, "field": "section"}
    full = folded_from(records)
    assert taken(written(known), full, policy, through=through + 3)[0].unchanged == 20, "nothing new needs no room"
