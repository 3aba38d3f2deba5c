"""What each event does to the tables, and that it does nothing else."""

from typing import Any

import pytest

from convmem.domain import Origin, Place
from convmem.memory import queries
from convmem.memory.events import (
    LessonForgotten,
    LessonKept,
    LessonSaved,
    PreferenceForgotten,
    PreferenceKept,
    PreferenceSaved,
    PreferenceStated,
    SectionDeleted,
    SectionKept,
    SectionWritten,
)
from convmem.memory.model import folded_text
from convmem.memory.projection import APPLIERS
from tests.support.folded import empty_index
from tests.support.remembered import BOTH, violations

ID, OTHER_ID = "01HF7YAT000000000000000007", "01HF7YAT000000000000000008"
HERE, THERE = Origin("laptop", "http", "agent/1"), Origin("phone", "stdio")
SAVED = PreferenceSaved(preference_id=ID, number=1, category="language", key="Reply", value="deutsch")


def applied(*events: Any, first_at_ms: int = 1_000) -> Any:
    """An index to which these happened, one an entry, ten ms apart; the second and later ones come from elsewhere."""
    connection = empty_index(BOTH)
    for number, event in enumerate(events):
        place = Place(number + 1, first_at_ms + 10 * number, THERE if number else HERE)
        APPLIERS[type(event)](connection, event, place)
    assert violations(connection) == []
    return connection


def test_a_saved_preference_is_shown_as_it_was_said():
    (known,) = queries.preferences(applied(SAVED))
    assert (known.preference_id, known.number, known.category, known.key, known.value) == (
        *(ID, 1, "language"),
        *("Reply", "deutsch"),
    )
    assert (known.confidence, known.source, known.previous_value, known.project) == (0.5, "explicit", None, None)
    assert (known.created_at, known.updated_at, known.sequence, known.changed_sequence) == (1_000, 1_000, 1, 1)
    assert known.origin == HERE


def test_a_statement_changes_what_it_says_and_when_and_from_where():
    changed = applied(SAVED, PreferenceStated(number=1, value="ÉNGLISCH", confidence=0.5, source="corrected"))
    (known,) = queries.preferences(changed)
    assert (known.value, known.previous_value, known.source) == ("ÉNGLISCH", "deutsch", "corrected")
    assert (known.created_at, known.updated_at, known.sequence, known.changed_sequence) == (1_000, 1_010, 1, 2)
    assert known.origin == THERE
    assert [row.folded for row in queries.searched(changed)] == ["reply\0énglisch"]


def test_a_statement_of_nothing_new_refreshes_alone():
    (before,) = queries.preferences(applied(SAVED))
    (after,) = queries.preferences(applied(SAVED, PreferenceStated(number=1)))
    differing = {name for name in before.__struct_fields__ if getattr(before, name) != getattr(after, name)}
    assert differing == {"updated_at", "changed_sequence", "origin"}


def test_times_do_not_fall_with_the_clock():
    connection = applied(SAVED, SectionWritten(section="goals", content="a"))
    earlier = Place(3, 5, THERE)
    for event in (PreferenceStated(number=1), SectionWritten(section="goals", content="b")):
        APPLIERS[type(event)](connection, event, earlier)
        earlier = earlier._replace(sequence=4)
    (preference,) = queries.preferences(connection)
    (section,) = queries.sections(connection)
    assert (preference.updated_at, section.updated_at) == (1_000, 1_010)
    assert (preference.changed_sequence, section.changed_sequence, section.content) == (3, 4, "b")


def test_a_state_is_shown_as_it_stood():
    preference = PreferenceKept(
        preference_id=ID,
        number=7,
        category="other",
        key="k",
        value="new",
        confidence=0.7,
        source="inferred",
        previous_value="old",
        project="p",
        updated_at=2_000,
        changed_sequence=9,
    )
    texts = {"situation": "s", "mistake": "m", "correction": "c"}
    lesson = LessonKept(lesson_id=OTHER_ID, number=8, **texts, project="p", changed_sequence=11)
    section = SectionKept(section="goals", content="x", updated_at=3_000, changed_sequence=10)
    connection = applied(preference, lesson, section)
    (known,) = queries.preferences(connection)
    assert (known.previous_value, known.confidence, known.updated_at, known.changed_sequence) == ("old", 0.7, 2_000, 9)
    assert (known.created_at, known.number, known.origin) == (1_000, 7, HERE)
    (learned,) = queries.lessons(connection)
    assert (learned.number, learned.created_at, learned.changed_sequence, learned.origin) == (8, 1_010, 11, THERE)
    (written,) = queries.sections(connection)
    assert (written.created_at, written.updated_at, written.changed_sequence) == (1_020, 3_000, 10)


def test_a_lesson_is_found_by_all_its_texts():
    connection = applied(LessonSaved(lesson_id=ID, number=1, situation="Ａ", mistake="B", correction="ﬁ"))
    assert [row.folded for row in queries.searched(connection)] == ["a\0b\0fi"]
    assert folded_text("Ａ", "B", "ﬁ") == "a\0b\0fi"


def test_what_is_forgotten_is_gone_and_counted():
    lesson = LessonSaved(lesson_id=ID, number=2, situation="s", mistake="m", correction="c")
    section = SectionWritten(section="goals", content="x")
    gone = (PreferenceForgotten(number=1), LessonForgotten(number=2), SectionDeleted(section="goals"))
    connection = applied(SAVED, lesson, section, PreferenceStated(number=1), *gone)
    assert queries.totals(connection) == (0, 0, 0)
    assert dict(connection.execute("SELECT name, count FROM memory_total").fetchall()) == {
        "deleted": 3,
        "superseded": 1,
    }


@pytest.mark.parametrize(
    "event",
    [
        PreferenceStated(number=9),
        PreferenceForgotten(number=9),
        LessonForgotten(number=9),
        SectionDeleted(section="x"),
    ],
)
def test_what_happened_to_nothing_has_not_happened(event: Any):
    with pytest.raises(AssertionError):
        applied(SAVED, event)


def test_two_records_of_one_id_live_and_are_told_apart_by_number():
    twin = PreferenceKept(
        preference_id=ID, number=2, category="other", key="k", value="v", confidence=0.5, source="explicit"
    )
    connection = applied(SAVED, twin, PreferenceStated(number=2, value="w"), PreferenceForgotten(number=1))
    (known,) = queries.preferences(connection)
    assert (known.number, known.value) == (2, "w")
