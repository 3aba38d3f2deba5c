"""What is live, as state events that make the same index anew."""

from convmem.domain import Waste
from convmem.memory import kept, queries
from convmem.memory.events import LessonKept, PreferenceKept, RecordForgotten, SectionKept
from convmem.store.made import Maker
from tests.support.folded import tables
from tests.support.remembered import BOTH, Remembered, folded_from, violations

# What compaction takes away is the only difference.
VAIN = {"memory_total", "messages_total", "messages_gone"}


def stocked() -> Remembered:
    remembered = Remembered()
    remembered.remember(project="p")
    remembered.save_lesson()
    remembered.write_section("goals", "ship")
    remembered.capture("seen")
    remembered.remember(key="gone")
    remembered.clock.pass_ms(50)
    remembered.remember(project="p", value="tabs", source="inferred")
    remembered.write_section("goals", "rest")
    remembered.forget(4)
    remembered.save_lesson(project="p", mistake="ü\0")
    return remembered


def test_an_index_folded_from_the_state_is_the_one_it_was_taken_from():
    remembered = stocked()
    again = folded_from(remembered.live())
    before, after = tables(remembered.connection), tables(again)
    assert {name: rows for name, rows in before.items() if name not in VAIN} == {
        name: rows for name, rows in after.items() if name not in VAIN
    }
    assert violations(again) == []
    assert kept.waste(again) == Waste()


def test_records_come_by_rising_sequence_whole_and_with_what_they_came_from():
    remembered = stocked()
    records = list(kept.live(remembered.connection))
    assert [(record.sequence, type(record.event)) for record in records] == [
        (1, PreferenceKept),
        (2, LessonKept),
        (3, SectionKept),
        (8, RecordForgotten),
        (9, LessonKept),
    ]
    preference = records[0]
    assert preference.event == PreferenceKept(
        preference_id=preference.event.preference_id,  # type: ignore[attr-defined]
        category="coding_pref",
        key="indent",
        value="tabs",
        confidence=0.5,
        source="inferred",
        number=1,
        previous_value="four spaces",
        project="p",
        updated_at=preference.at_ms + 50,
        changed_sequence=6,
    )
    assert records[1].event.changed_sequence is None  # type: ignore[attr-defined]
    assert len(records) == sum(queries.totals(remembered.connection)) + 1


def test_what_is_in_vain_is_counted():
    remembered = stocked()
    assert kept.waste(remembered.connection) == Waste(deleted=1, superseded=2)
    remembered.delete_section("goals")
    remembered.save_lesson()
    assert kept.waste(remembered.connection) == Waste(deleted=2, superseded=2)


def test_the_numbers_of_a_state_are_given_to_nothing_else():
    events = [record.event for record in stocked().live()]
    assert Maker([BOTH]).numbers(events) == [1, 2, 3, 5]
    assert Maker([BOTH]).ids(events) == [], "a record that came with a file does not speak for the store's own ids"
