"""store/reconcile: of two accounts of one state, record by record, which is believed; and whose index it is."""

from collections.abc import Sequence

import pytest

from convmem.domain import Event, Kept, Origin
from convmem.messages.events import MessageKept
from convmem.store.reconcile import Lost, Spans, differing, settled
from tests.support.notebook import AddedKept

ORIGIN = Origin("local", "test")
THROUGH = 20


def note(sequence: int, text: str) -> Kept:
    return Kept(sequence, 0, ORIGIN, AddedKept(note_id=f"{sequence:026}", note=text))


def message(sequence: int, text: str, changed: int | None = None) -> Kept:
    event: Event = MessageKept(
        message_id=f"{sequence:026}", session_id="s", role="user", content=text, changed_sequence=changed
    )
    return Kept(sequence, 0, ORIGIN, event)


def lost(*, filled: Sequence[int] = (), partly: Sequence[int] = (), changes: Sequence[int] = ()) -> Lost:
    made = Lost()
    for spans, sequences in ((made.filled, filled), (made.partly, partly), (made.changes, changes)):
        for sequence in sequences:
            spans.add(sequence, sequence)
    return made


def test_spans_meet_what_they_hold_and_nothing_between_them():
    spans = Spans()
    for first, last in ((3, 5), (6, 5), (8, 20), (10, 11), (30, 30)):
        spans.add(first, last)
    inside = {*range(3, 6), *range(8, 21), 30}
    for first in range(35):
        assert spans.meet(first, first) == (first in inside)
        for last in range(first, 35):
            assert spans.meet(first, last) == bool(inside.intersection(range(first, last + 1)))
    assert not Spans().meet(1, 9)


OURS, THEIRS = message(7, "log"), message(7, "index", changed=9)
# What the log says, what the index says, what was lost, and who is believed.
CASES: dict[str, tuple[Sequence[Kept], Sequence[Kept], Lost, Sequence[Kept]]] = {
    "alike": ([OURS], [OURS], lost(filled=[7], changes=[7]), [OURS]),
    "different, nothing lost": ([OURS], [THEIRS], lost(), [OURS]),
    "different, lost before it was made": ([OURS], [THEIRS], lost(filled=[6], changes=[6]), [OURS]),
    "different, lost after its last change": ([OURS], [THEIRS], lost(filled=[10], changes=[10]), [OURS]),
    "different, a change may be lost": ([OURS], [THEIRS], lost(filled=[8], changes=[8]), [THEIRS]),
    "different, its last change is lost": ([OURS], [THEIRS], lost(filled=[9], changes=[9]), [THEIRS]),
    "different, its entry is lost": ([OURS], [THEIRS], lost(filled=[7]), [THEIRS]),
    "different, its entry is partly lost": ([OURS], [THEIRS], lost(partly=[7]), [THEIRS]),
    "never changed, lost behind it": ([OURS], [message(7, "index")], lost(filled=[8], changes=[8]), [OURS]),
    "index alone, nothing lost": ([], [THEIRS], lost(), []),
    "index alone, filled in and deleted since": ([], [THEIRS], lost(filled=[7], changes=[7]), []),
    "index alone, its entry could not be added": ([], [THEIRS], lost(partly=[7], changes=[7]), [THEIRS]),
    "log alone, nothing lost": ([OURS], [], lost(), [OURS]),
    "log alone, lost before it": ([OURS], [], lost(changes=[7]), [OURS]),
    "log alone, its deletion may be lost": ([OURS], [], lost(changes=[8]), []),
    "log alone, lost behind the index": ([OURS], [], lost(changes=[21]), [OURS]),
    "behind what the index has seen": ([message(21, "log")], [message(21, "index")], lost(), [message(21, "log")]),
    "two kinds of one entry": ([OURS, note(7, "log")], [OURS, note(7, "index")], lost(), [OURS, note(7, "log")]),
    "one kind is missing": ([note(7, "a")], [OURS, note(7, "a")], lost(partly=[7]), [note(7, "a"), OURS]),
    "several of one kind": ([note(7, "a")], [note(7, "a"), note(7, "b")], lost(), [note(7, "a")]),
}


@pytest.mark.parametrize("case", CASES)
def test_every_case_has_its_rule(case: str):
    ours, theirs, parts, believed = CASES[case]
    others = [note(2, "same"), note(12, "same"), note(13, "same")]
    found = settled(
        iter(sorted([*others, *ours], key=lambda kept: kept.sequence)),
        iter(sorted([*others, *theirs], key=lambda kept: kept.sequence)),
        parts,
        THROUGH,
    )
    assert list(found) == sorted([*others, *believed], key=lambda kept: kept.sequence)


def test_what_differs_is_found_as_far_as_the_index_has_seen():
    left = [note(1, "a"), note(2, "b"), note(4, "d"), note(9, "x")]
    right = [note(1, "a"), note(2, "B"), note(3, "c"), note(9, "y")]
    assert list(differing(iter(left), iter(right), 8)) == [2, 3, 4]
    assert list(differing(iter(left), iter(left), 8)) == []
