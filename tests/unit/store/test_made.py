"""What a store has given out."""

from convmem.store.made import Made, Maker
from tests.support.notebook import NOTEBOOK, Added, AddedKept, Struck


def test_the_greater_of_each_is_kept():
    assert Made("B", 1).raised(Made("A", 7)) == Made("B", 7)
    assert Made().raised(Made("A", 1)) == Made("A", 1) == Made("A", 1).raised(Made())


def test_ids_are_counted_where_they_were_made_and_numbers_wherever_they_stand():
    maker = Maker([NOTEBOOK])
    brought = AddedKept(note_id="7" + "Z" * 25, note="from a file", number=9)
    assert maker.of([Added(note_id="A", note="new", number=3), brought, Struck(sequence=1)]) == Made("A", 9)
    assert maker.of([Struck(sequence=1)]) == Made()


def test_an_event_that_might_hold_a_number_and_does_not_says_nothing():
    assert Maker([NOTEBOOK]).numbers([Added(note_id="A", note="unnumbered")]) == []
