"""A stranger's line is checked in every field, by the rules of arguments without their leniency."""

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from convmem.domain import Named
from convmem.errors import Invalid
from convmem.memory.line_checks import (
    LessonRead,
    PreferenceRead,
    SectionRead,
    check_lesson,
    check_preference,
    check_section,
    look_closely,
)
from convmem.memory.model import (
    DISTILLED_SECTIONS,
    Lesson,
    Preference,
    Section,
    lesson_name,
    preference_name,
)
from convmem.messages import line_checks as messages
from tests.support.remembered import lesson_record, preference_record, section_record

Check = Callable[[Mapping[str, Any]], Named]
Make = Callable[..., dict[str, Any]]
KINDS: list[tuple[Check, Make]] = [
    (check_preference, preference_record),
    (check_lesson, lesson_record),
    (check_section, section_record),
]


def test_a_record_is_known_by_what_must_be_unique_alone():
    assert check_preference(preference_record()).identity == b"p" + preference_name("p", "coding_pref", "indent")
    assert check_preference(preference_record(project=None)).identity == b"p" + preference_name(
        None, "coding_pref", "indent"
    )
    same = {"value": "x", "confidence": 1, "source": "inferred", "previous_value": None, "updated_at": 2**62}
    assert check_preference(preference_record(**same)) == check_preference(preference_record())
    texts = ("before a release", "tests were skipped", "run them")
    assert check_lesson(lesson_record()).identity == b"l" + lesson_name("p", *texts)
    assert check_section(section_record()).identity == b"sgoals"


def test_an_id_is_remembered_as_the_message_would_be_that_bears_it():
    record_id = preference_record()["id"]
    borne = (messages.identity(record_id),)
    assert check_preference(preference_record()).ids == check_lesson(lesson_record()).ids == borne
    assert check_preference(preference_record(id=record_id.lower())).ids == borne
    assert check_section(section_record()).ids == ()


def test_of_sections_those_are_limited_that_a_person_writes():
    assert check_section(section_record()).is_limited
    assert not any(check_section(section_record(section=section)).is_limited for section in DISTILLED_SECTIONS)
    assert not check_preference(preference_record()).is_limited
    assert not check_lesson(lesson_record()).is_limited


@pytest.mark.parametrize(("check", "make"), KINDS)
def test_every_field_is_needed_but_for_those_that_may_be_absent(check: Check, make: Make):
    record = make()
    optional = {"previous_value", "project"}
    for name in record:
        rest = {other: value for other, value in record.items() if other != name}
        if name in optional:
            check(rest)
            check(record | {name: None})
            continue
        for broken in (rest, record | {name: None}):
            with pytest.raises(Invalid) as refusal:
                check(broken)
            assert refusal.value.details["field"] == name


@pytest.mark.parametrize(("check", "make"), KINDS)
@pytest.mark.parametrize("name", ["number", "sequence", "changed_sequence", "Origin"])
def test_no_other_field_is_taken(check: Check, make: Make, name: str):
    with pytest.raises(Invalid, match="is not a field here"):
        check(make(**{name: 1}))


@pytest.mark.parametrize(
    ("check", "make", "name", "value"),
    [
        (check_preference, preference_record, "id", "12"),
        (check_preference, preference_record, "id", 12),
        (check_preference, preference_record, "category", "food"),
        (check_preference, preference_record, "key", ""),
        (check_preference, preference_record, "key", "k" * 201),
        (check_preference, preference_record, "key", "a\0b"),
        (check_preference, preference_record, "value", " "),
        (check_preference, preference_record, "value", "v" * 2_001),
        (check_preference, preference_record, "previous_value", ""),
        (check_preference, preference_record, "confidence", 1.01),
        (check_preference, preference_record, "confidence", -0.1),
        (check_preference, preference_record, "confidence", True),
        (check_preference, preference_record, "confidence", "0.5"),
        (check_preference, preference_record, "source", "heard"),
        (check_preference, preference_record, "project", ""),
        (check_preference, preference_record, "project", "p" * 257),
        (check_preference, preference_record, "created_at", -1),
        (check_preference, preference_record, "created_at", "1"),
        (check_preference, preference_record, "created_at", 1.0),
        (check_preference, preference_record, "updated_at", 2**63),
        (check_preference, preference_record, "updated_at", 0),
        (check_preference, preference_record, "origin", {"transport": ""}),
        (check_lesson, lesson_record, "id", "x"),
        (check_lesson, lesson_record, "situation", "s" * 1_001),
        (check_lesson, lesson_record, "mistake", ""),
        (check_lesson, lesson_record, "correction", "\u200b"),
        (check_lesson, lesson_record, "created_at", 2**63),
        (check_section, section_record, "section", "Goals"),
        (check_section, section_record, "content", ""),
        (check_section, section_record, "content", "c" * 4_001),
        (check_section, section_record, "updated_at", 1),
    ],
)
def test_what_is_wrong_is_named(check: Check, make: Make, name: str, value: Any):
    with pytest.raises(Invalid) as refusal:
        check(make(**{name: value}))
    assert refusal.value.details["field"].split(".")[0] == name


def test_bounds_belong_and_texts_may_hold_anything():
    check_preference(preference_record(key="k" * 200, value="\0" * 1_999 + "v", confidence=0, updated_at=2**63 - 1))
    check_lesson(lesson_record(situation="s" * 1_000, mistake="a\u2028\0", correction="🟡" * 1_000))
    check_section(section_record(section="s" * 64, content="\0" + "c" * 3_999))


def test_there_is_no_quick_look():
    assert look_closely(b"{}") is None  # type: ignore[func-returns-value]


def test_a_line_is_checked_in_every_field_that_a_record_has():
    not_exported = {"number", "sequence", "changed_sequence"}
    renamed = {"preference_id": "id", "lesson_id": "id"}
    for read, model in ((PreferenceRead, Preference), (LessonRead, Lesson), (SectionRead, Section)):
        names = {renamed.get(name, name) for name in model.__struct_fields__} - not_exported
        assert set(read.model_fields) == names | {"type"}
