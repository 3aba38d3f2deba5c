"""What commands do to what is remembered: receipts, refusals, and nothing at all where nothing changes."""

import hashlib
import itertools
from typing import Any

import msgspec
import pytest

from convmem.domain import Origin
from convmem.errors import Invalid, NotFound
from convmem.limits import FORGOTTEN_PREVIEW_CODE_POINTS, PROFILE_SECTIONS_MAX
from convmem.memory import imports, queries
from convmem.memory.decide import DECIDERS
from convmem.memory.inputs import DeleteSection, Forget, Remember, SaveLesson, WriteSection
from convmem.memory.model import DISTILLED_SECTIONS
from convmem.messages import queries as messages
from tests.support.manual_clock import START_MS
from tests.support.remembered import LESSON, PREFERENCE, Remembered

NOBODY = "01HF7YAT00000000000000ZZZZ"


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def last_event(remembered: Remembered) -> Any:
    return msgspec.msgpack.decode(remembered.log[-1][1])


def test_a_first_statement_is_answered_with_its_receipt(remembered: Remembered):
    answer = remembered.remember(value="vier\0 Leerzeichen", project="convmem")
    assert answer == {
        "id": "01HF7YAT000000000000000007",
        "number": 1,
        "outcome": "saved",
        "changed": ["value", "confidence", "source"],
        "category": "coding_pref",
        "key": "indent",
        "value": "vier\0 Leerzeichen",
        "confidence": 0.5,
        "source": "explicit",
        "project": "convmem",
        "updated_at": START_MS,
        "sequence": "1",
        "sha256": sha256("vier\0 Leerzeichen"),
    }


def test_each_repetition_adds_a_tenth_up_to_one_and_the_last_ones_still_refresh(remembered: Remembered):
    remembered.remember()
    told = []
    for number in range(1, 8):
        remembered.clock.pass_ms(1)
        answer = remembered.remember()
        assert (answer["id"], answer["number"], answer["outcome"]) == ("01HF7YAT000000000000000007", 1, "repeated")
        assert answer["updated_at"] == START_MS + number
        assert answer["sequence"] == str(1 + number)
        told.append((answer["confidence"], answer["changed"]))
    assert told == [
        (0.6, ["confidence"]),
        (0.7, ["confidence"]),
        (0.8, ["confidence"]),
        (0.9, ["confidence"]),
        (1.0, ["confidence"]),
        (1.0, []),
        (1.0, []),
    ]
    assert last_event(remembered) == {"type": "preference_stated", "number": 1}


def test_another_value_begins_anew_and_keeps_the_one_before(remembered: Remembered):
    remembered.remember()
    remembered.remember()
    changed = remembered.remember(value="tabs")
    assert changed["outcome"] == "changed"
    assert (changed["confidence"], changed["source"]) == (0.5, "corrected")
    assert (changed["value"], changed["previous_value"]) == ("tabs", "four spaces")
    assert last_event(remembered) == {
        "type": "preference_stated",
        "number": 1,
        "value": "tabs",
        "confidence": 0.5,
        "source": "corrected",
    }
    repeated = remembered.remember(value="tabs")
    assert (repeated["confidence"], repeated["source"], repeated["previous_value"]) == (0.6, "corrected", "four spaces")
    back = remembered.remember()
    assert (back["value"], back["previous_value"], back["confidence"]) == ("four spaces", "tabs", 0.5)


@pytest.mark.parametrize(
    ("known", "given", "is_changed", "stands"),
    [
        (None, None, False, "explicit"),
        (None, "inferred", False, "inferred"),
        ("inferred", None, False, "inferred"),
        ("inferred", "explicit", False, "explicit"),
        ("explicit", "corrected", False, "corrected"),
        ("explicit", None, True, "corrected"),
        ("explicit", "explicit", True, "corrected"),
        ("explicit", "corrected", True, "corrected"),
        ("explicit", "inferred", True, "inferred"),
        ("inferred", "inferred", True, "inferred"),
    ],
)
def test_where_it_is_known_from(
    remembered: Remembered, known: str | None, given: str | None, is_changed: bool, stands: str
):
    if known is not None:
        remembered.remember(source=known)
    said = {"source": given, "value": "another"} if is_changed else {"source": given}
    assert remembered.remember(**said)["source"] == stands


def test_a_preference_belongs_to_its_project_its_category_and_its_key(remembered: Remembered):
    places: list[dict[str, str]] = [
        {},
        {"project": "a"},
        {"project": "b"},
        {"key": "Indent"},
        {"category": "work_style"},
        {"category": "work_style", "project": "a"},
    ]
    numbers = [remembered.remember(**place)["number"] for place in places]
    assert numbers == [1, 2, 3, 4, 5, 6]
    assert [remembered.remember(**place)["number"] for place in places] == numbers
    assert remembered.remember(project=" ")["number"] == 1


def test_a_statement_comes_from_where_it_was_made_last(remembered: Remembered):
    remembered.remember()
    remembered.origin = Origin("phone", "http", "agent/2")
    remembered.clock.pass_ms(-9)
    answer = remembered.remember()
    assert answer["updated_at"] == START_MS, "the clock stepped back, the time does not"
    known = queries.preference_of(remembered.connection, None, "coding_pref", "indent")
    assert known is not None
    assert (known.origin, known.sequence, known.changed_sequence) == (remembered.origin, 1, 2)


def test_a_lesson_is_learned_once(remembered: Remembered):
    first = remembered.save_lesson()
    assert first == {
        "id": "01HF7YAT000000000000000007",
        "number": 1,
        "created_at": START_MS,
        "sequence": "1",
        "sha256": sha256('{"correction":"run them","mistake":"tests were skipped","situation":"before a release"}'),
    }
    remembered.clock.pass_ms(7)
    assert remembered.save_lesson() == first | {"replayed": True}
    assert len(remembered.log) == 1
    others = [remembered.save_lesson(**more)["number"] for more in ({"project": "a"}, {"mistake": "x"})]
    assert others == [2, 3]


def test_texts_that_only_together_are_the_same_are_two_lessons(remembered: Remembered):
    texts = ("ab", "c", "d"), ("a", "bc", "d"), ("a", "b", "cd")
    answers = [remembered.save_lesson(**dict(zip(LESSON, three, strict=True))) for three in texts]
    assert {answer["number"] for answer in answers} == {1, 2, 3}


def test_one_counter_numbers_preferences_lessons_and_what_hooks_captured(remembered: Remembered):
    numbers = [
        remembered.remember()["number"],
        remembered.capture("a prompt")["number"],
        remembered.save_lesson()["number"],
        remembered.remember(key="other")["number"],
    ]
    assert numbers == [1, 2, 3, 4]


def test_a_number_is_not_given_again_when_its_record_is_gone(remembered: Remembered):
    remembered.remember()
    remembered.forget("1")
    assert remembered.remember()["number"] == 2


def test_a_number_removes_the_one_thing_that_bears_it(remembered: Remembered):
    preference = remembered.remember(project="p")
    lesson = remembered.save_lesson()
    prompt = remembered.capture("what is the plan?", project="p")
    assert remembered.forget(1) == {
        "removed": [
            {
                "type": "preference",
                "id": preference["id"],
                "number": 1,
                "project": "p",
                "category": "coding_pref",
                "key": "indent",
                "preview": "four spaces",
                "total_bytes": 11,
                "at": START_MS,
                "origin": {"device": "local", "transport": "test"},
            }
        ],
        "sequence": "4",
    }
    assert remembered.forget("02") == {
        "removed": [
            {
                "type": "lesson",
                "id": lesson["id"],
                "number": 2,
                "preview": "before a release",
                "total_bytes": 16,
                "at": START_MS,
                "origin": {"device": "local", "transport": "test"},
            }
        ],
        "sequence": "5",
    }
    assert remembered.forget("3", type="interaction") == {
        "removed": [
            {
                "type": "interaction",
                "id": prompt["message_id"],
                "number": 3,
                "project": "p",
                "kind": "prompt",
                "session_id": "hook",
                "preview": "what is the plan?",
                "total_bytes": 17,
                "at": START_MS,
                "origin": {"device": "local", "transport": "test"},
            }
        ],
        "sequence": "6",
    }
    assert queries.totals(remembered.connection) == (0, 0, 0)
    assert messages.totals(remembered.connection).live == 0


def test_an_id_removes_what_a_number_removes(remembered: Remembered):
    ids = [remembered.remember()["id"], remembered.save_lesson()["id"], remembered.capture("x")["message_id"]]
    kinds = [remembered.forget(record_id.lower())["removed"][0]["type"] for record_id in ids]
    assert kinds == ["preference", "lesson", "interaction"]


def test_an_id_of_digits_alone_is_no_number():
    remembered = Remembered()
    digits = "01234567890123456789012345"
    remembered.remember()
    remembered.connection.execute("UPDATE memory_preference SET preference_id = ?", (digits,))
    assert remembered.forget(digits)["removed"][0]["id"] == digits


@pytest.mark.parametrize("target", ["1", 7, "0", "9999999999999999999", NOBODY, NOBODY.lower()])
def test_nothing_there_is_an_answer_and_nothing_is_written(remembered: Remembered, target: Any):
    remembered.remember()
    remembered.forget("1")
    before = len(remembered.log)
    assert remembered.forget(target, type="lesson") == {"removed": []}
    assert len(remembered.log) == before


def test_another_type_than_named_is_refused_with_the_real_one(remembered: Remembered):
    remembered.remember()
    remembered.save_lesson()
    remembered.capture("x")
    real = ["preference", "lesson", "interaction"]
    for (number, is_really), named in itertools.product(enumerate(real, 1), real):
        if named != is_really:
            with pytest.raises(Invalid, match=f" {is_really}, nothing was removed") as refusal:
                remembered.forget(number, type=named)
            assert refusal.value.details == {"field": "type", "type": is_really}
    assert len(remembered.log) == 3


def test_an_ordinary_message_is_not_forgotten_here(remembered: Remembered):
    message_id = remembered.write_message("x")["message_id"]
    for guard in ({}, {"type": "interaction"}):
        with pytest.raises(NotFound, match="delete_message") as refusal:
            remembered.forget(message_id, **guard)
        assert refusal.value.details == {"field": "target_id", "message_id": message_id}
    assert messages.is_live(remembered.connection, message_id)


def test_what_was_removed_is_shown_in_a_bounded_preview(remembered: Remembered):
    remembered.remember(value="ü" * 2_000)
    remembered.remember(key="short", value="ü" * FORGOTTEN_PREVIEW_CODE_POINTS)
    (removed,) = remembered.forget(1)["removed"]
    assert removed["preview"] == "ü" * (FORGOTTEN_PREVIEW_CODE_POINTS - 1) + "…"
    assert removed["total_bytes"] == 4_000
    (removed,) = remembered.forget(2)["removed"]
    assert removed["preview"] == "ü" * FORGOTTEN_PREVIEW_CODE_POINTS
    remembered.remember(key="marks", value="e\u0301" * 1_000)
    (removed,) = remembered.forget(3)["removed"]
    assert removed["preview"] == "e\u0301" * ((FORGOTTEN_PREVIEW_CODE_POINTS - 1) // 2) + "…"


def test_a_section_is_written_changed_and_left_alone(remembered: Remembered):
    first = remembered.write_section("goals", "ship\0 it")
    assert first == {
        "section": "goals",
        "changed": ["content"],
        "updated_at": START_MS,
        "sequence": "1",
        "sha256": sha256("ship\0 it"),
    }
    remembered.clock.pass_ms(3)
    assert remembered.write_section("goals", "ship\0 it") == first | {"changed": []}
    assert len(remembered.log) == 1
    changed = remembered.write_section("goals", "rest")
    assert (changed["updated_at"], changed["sequence"]) == (START_MS + 3, "2")
    assert remembered.write_section("goals", "rest")["sequence"] == "2"


def test_a_section_is_deleted_once(remembered: Remembered):
    remembered.write_section("goals", "x")
    assert remembered.delete_section("goals") == {"section": "goals", "deleted": True, "sequence": "2"}
    with pytest.raises(NotFound) as refusal:
        remembered.delete_section("goals")
    assert refusal.value.details == {"field": "section"}
    assert remembered.write_section("goals", "x")["changed"] == ["content"]


def test_a_profile_has_so_many_sections_and_known_ones_can_still_change(remembered: Remembered):
    for number in range(PROFILE_SECTIONS_MAX):
        remembered.write_section(f"s{number}", "x")
    with pytest.raises(Invalid) as refusal:
        remembered.write_section("one_more", "x")
    assert refusal.value.details == {"field": "section"}
    assert remembered.write_section("s0", "y")["changed"] == ["content"]
    remembered.delete_section("s1")
    assert remembered.write_section("one_more", "x")["changed"] == ["content"]


def test_what_distill_writes_takes_no_room_from_a_persons_sections(remembered: Remembered):
    for name in DISTILLED_SECTIONS:
        remembered.write_section(name, "x")
    for number in range(PROFILE_SECTIONS_MAX):
        assert remembered.write_section(f"s{number}", "x")["changed"] == ["content"]
    remembered.delete_section("topics")
    assert remembered.write_section("topics", "y")["changed"] == ["content"]
    with pytest.raises(Invalid):
        remembered.write_section("one_more", "x")


def test_every_command_has_its_rule():
    assert set(DECIDERS) == {Remember, SaveLesson, Forget, WriteSection, DeleteSection, *imports.DECIDERS}


def test_a_preference_holds_all_that_its_bounds_allow(remembered: Remembered):
    answer = remembered.remember(key="🟡" * 200, value="🟡" * 2_000)
    assert answer["value"] == "🟡" * 2_000
    assert set(PREFERENCE) <= set(answer)
