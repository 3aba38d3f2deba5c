"""What a purge leaves of entries in a row: what goes is said nowhere, what stays says what it said."""

from convmem.tables.chunks import Entry
from convmem.tables.purge_rules import PURGED, left_of, without_before

ENTRIES = (
    Entry(1, 1, "create", '"one"'),
    Entry(2, 2, "update", '"two"', '"one"'),
    Entry(3, 3, "delete", None, '"two"'),
    Entry(4, 4, "create", '"four"'),
    Entry(5, 5, "delete"),
)


def test_what_is_old_goes_and_the_rest_is_the_same():
    left = left_of(ENTRIES, lambda entry: entry.version < 3, 5)
    assert left.entries == list(ENTRIES[2:])
    assert (left.changed, left.gone, left.last_gone) == ([], 2, None)


def test_the_last_that_went_is_told_of_for_the_next_piece():
    left = left_of(ENTRIES[:2], lambda entry: True, 5)
    assert (left.entries, left.gone, left.last_gone) == ([], 2, ENTRIES[1])


def test_the_newest_stays_without_its_texts_and_goes_once():
    left = left_of(ENTRIES, lambda entry: True, 5)
    assert left.entries == [Entry(5, 5, "delete", None, PURGED)]
    assert left.gone == 5
    again = left_of(left.entries, lambda entry: True, 5)
    assert (again.gone, again.changed) == (0, [])


def test_an_update_says_nothing_of_what_went_before_it():
    told = without_before(Entry(2, 2, "update", '"two"', '"one"'), ENTRIES[0])
    assert told == Entry(2, 2, "update", '"two"')


def test_a_deletion_takes_along_what_it_took_away():
    assert without_before(ENTRIES[4], ENTRIES[3]).prev_data_json == '"four"'
    assert without_before(ENTRIES[2], ENTRIES[1]) == ENTRIES[2]
    assert without_before(ENTRIES[4], Entry(4, 4, "delete")).prev_data_json == PURGED
    assert without_before(ENTRIES[4]) == ENTRIES[4]
