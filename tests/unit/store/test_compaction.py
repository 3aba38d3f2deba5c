"""store/compaction.py: what a rewrite keeps, what it drops, and what it leaves behind."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import apsw
import pytest

from convmem.domain import Domain, Kept, Origin, Place
from convmem.errors import LogCorrupt, Stopping, StorageFull
from convmem.store import compaction, generation
from convmem.store.compaction import Outcome, cut_tails, live
from convmem.store.log import NAME, Position
from tests.support.faulty_files import FaultyFiles
from tests.support.notebook import NOTEBOOK, Add, AddedKept, Strike, notes
from tests.support.stores import ORIGIN, Opened, open_store


def filled(count: int = 30) -> Opened:
    """A store in which every third note was struck out."""
    opened = open_store()
    for number in range(count):
        opened.commit(Add((f"note {number}",)))
    for number in range(1, count, 3):
        opened.commit(Strike(number))
    return opened


def test_what_is_live_stays_with_its_sequence_and_what_is_dead_is_in_no_byte() -> None:
    opened = filled()
    before, sequence, size = notes(opened.connection), opened.store.facts().sequence, len(opened.log())
    outcome = opened.compact()
    assert outcome == Outcome(2, size, len(opened.log()), len(before))
    assert notes(opened.connection) == before
    assert opened.store.facts().sequence == sequence
    assert len(opened.log()) < size
    assert b"note 1" in opened.log(), "note 1 lives"
    assert b"note 0" not in opened.log()
    assert opened.disk.names() == [NAME]
    assert opened.shelf.generations() == [2]


def test_the_next_entry_has_the_next_sequence_also_after_a_start() -> None:
    opened = filled()
    sequence = opened.store.facts().sequence
    opened.compact()
    assert opened.commit(Add(("a",)))[0]["sequence"] == sequence + 1
    again = open_store(opened.disk)
    assert again.commit(Add(("b",)))[0]["sequence"] == sequence + 2


def test_origin_and_time_stay() -> None:
    opened = open_store()
    opened.clock.pass_ms(123)
    opened.commit(Add(("a",)))
    row = opened.connection.execute("SELECT note_id, sequence, at_ms, device, note FROM notes_note").fetchall()
    opened.clock.pass_ms(1_000_000)
    opened.compact()
    assert opened.connection.execute("SELECT note_id, sequence, at_ms, device, note FROM notes_note").fetchall() == row


def test_compacting_again_and_again_changes_nothing_but_the_generation() -> None:
    opened = filled()
    opened.compact()
    log = opened.log()
    outcome = opened.compact()
    assert outcome == Outcome(3, len(log), len(log), 20)
    assert NOTEBOOK.waste(opened.connection) == (0, 0, 0)
    bodies = [[frame.payload for frame in log_of(data).store.log.frames()] for data in (log, opened.log())]
    assert bodies[0] == bodies[1]


def log_of(data: bytes) -> Opened:
    disk = FaultyFiles()
    disk.open(NAME).write(0, data)
    return open_store(disk)


def test_an_empty_store_and_one_of_which_nothing_lives_can_be_compacted() -> None:
    opened = open_store()
    assert opened.compact().kept == 0
    assert opened.commit(Add(("a",)))[0]["sequence"] == 1
    opened.commit(Strike(1))
    assert opened.compact().kept == 0
    for again in (opened, open_store(opened.disk)):
        assert notes(again.connection) == []
    assert again.commit(Add(("b",)))[0]["sequence"] == 3


def test_writes_between_the_two_halves_are_in_the_new_generation() -> None:
    opened = filled(6)
    rewrite = opened.rewrite()
    rewrite.prepare()
    opened.commit(Add(("meanwhile",)), Strike(2))
    opened.commit(Add(("and again",)))
    before = notes(opened.connection)
    outcome = rewrite.finish(opened.store)
    assert notes(opened.connection) == before
    assert outcome.log_bytes_after == len(opened.log())
    rewrite.clean()
    assert opened.check() == []
    assert b"note 1" in opened.log(), "what died meanwhile is waste of the new generation"
    assert NOTEBOOK.waste(opened.connection).deleted == 1


def test_writes_while_the_live_state_is_read_are_followed_until_the_draft_is_close_behind(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "CLOSE_BYTES", 0)
    opened = filled(6)
    rounds = iter(range(4))

    def committed() -> Position:
        if (number := next(rounds, None)) is not None:
            opened.commit(Add((f"while it is asked {number}",)))
        return opened.store.log.end

    rewrite = opened.rewrite()
    rewrite._committed = committed
    rewrite.prepare()
    assert next(rounds, None) is None
    steps = len(opened.disk.steps)
    rewrite.finish(opened.store)
    assert opened.disk.steps[steps:] == ["rename", "sync directory"], "nothing was left to copy"
    rewrite.clean()
    assert len(notes(opened.connection)) == 4 + 4


def test_a_writer_that_never_rests_does_not_keep_compaction_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction, "CLOSE_BYTES", 0)
    opened = filled(6)

    def committed() -> Position:
        opened.commit(Add(("x" * 1_000,)))
        return opened.store.log.end

    rewrite = opened.rewrite()
    rewrite._committed = committed
    rewrite.prepare()
    rewrite.finish(opened.store)
    rewrite.clean()
    assert opened.check() == []


def test_a_wrong_index_is_never_copied_into_the_log() -> None:
    opened = filled()
    before = notes(opened.connection)
    opened.connection.execute("UPDATE notes_note SET note = 'forged' WHERE sequence = 2")
    opened.connection.execute("DELETE FROM notes_note WHERE sequence = 5")
    opened.connection.execute("INSERT INTO notes_note VALUES ('Z', 1, 1, 'd', 'risen', 0)")
    opened.compact()
    assert notes(opened.connection) == before
    assert opened.check() == []


@pytest.mark.parametrize("where", [50, -30])
def test_a_damaged_log_is_not_rewritten(where: int) -> None:
    opened = filled().declare_damaged()
    file = opened.disk.files[NAME]
    at = where % len(file.written)
    file.written = file.written[:at] + bytes([file.written[at] ^ 1]) + file.written[at + 1 :]
    damaged = file.written
    with pytest.raises(LogCorrupt) as refused:
        opened.compact()
    assert refused.value.details["file"] == NAME
    assert refused.value.details["offset"] <= at
    assert opened.log() == damaged
    assert opened.disk.names() == [NAME]
    assert opened.shelf.generations() == [1]


@pytest.mark.parametrize("asked", range(1, 8))
def test_a_stop_at_any_step_of_the_preparation_abandons_it(asked: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "STATE_FRAME_BYTES", 100)
    opened = filled()
    log, before = opened.log(), notes(opened.connection)
    answers = iter([False] * (asked - 1))
    with pytest.raises(Stopping) as refused:
        opened.compact(is_stopped=lambda: next(answers, True))
    assert refused.value.facts()["retryable"] is True
    assert next(answers, None) is None
    assert (opened.log(), opened.disk.names(), opened.shelf.generations()) == (log, [NAME], [1])
    opened.commit(Add(("goes on",)))
    assert len(notes(opened.connection)) == len(before) + 1


def test_how_far_it_is_rises_over_all_parts_of_the_work_and_ends_at_the_total(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(generation, "STATE_FRAME_BYTES", 100)
    told: list[tuple[float, float, str]] = []
    filled().compact(tell=lambda done, total, sentence: told.append((done, total, sentence)))
    assert len({sentence for _, _, sentence in told}) == 4
    assert [done for done, _, _ in told] == sorted(done for done, _, _ in told)
    assert told[-1][:2] == (100, 100)


def test_a_discard_after_the_takeover_harms_nothing() -> None:
    opened = filled()
    rewrite = opened.rewrite()
    rewrite.prepare()
    rewrite.finish(opened.store)
    rewrite.discard()
    rewrite.clean()
    assert opened.check() == []
    assert opened.shelf.generations() == [2]


def test_a_discard_before_it_leaves_the_store_as_it_was() -> None:
    opened = filled()
    log = opened.log()
    rewrite = opened.rewrite()
    rewrite.prepare()
    rewrite.discard()
    rewrite.discard()
    assert (opened.log(), opened.disk.names(), opened.shelf.generations()) == (log, [NAME], [1])


def test_an_index_that_cannot_take_the_last_batches_leaves_the_store_as_it_was() -> None:
    opened = filled()
    rewrite = opened.rewrite()
    rewrite.prepare()
    draft = rewrite._draft
    assert draft is not None
    assert draft.index is not None
    draft.index.connection.pragma("max_page_count", draft.index.connection.pragma("page_count"))
    for number in range(9):
        opened.commit(Add((f"{number} " + "x" * 1_900,)))
    before = notes(opened.connection)
    with pytest.raises(StorageFull):
        rewrite.finish(opened.store)
    assert (opened.disk.names(), opened.shelf.generations()) == ([NAME], [1])
    opened.commit(Add(("goes on",)))
    opened.compact()
    assert notes(opened.connection)[:-1] == before


def test_tails_that_were_cut_off_go_with_the_old_generation() -> None:
    opened = filled(6)
    opened.disk.files[NAME].written += b"a tail"
    opened = open_store(opened.disk)
    assert cut_tails(opened.disk) == [opened.report.side_file]
    opened.disk.open("cut-my-paper.txt")
    opened.compact()
    assert cut_tails(opened.disk) == []
    assert opened.disk.names() == [NAME, "cut-my-paper.txt"]


def test_whoever_brings_records_along_hands_them_in_and_the_sequence_goes_on_behind_them() -> None:
    opened = filled(6)
    before, through = notes(opened.connection), opened.store.facts().sequence
    numbers = opened.commit(Strike(999_999), Add(("counted",)), Strike(through + 1))[1]["number"]
    through += 2

    def records(connection: apsw.Connection, known: int, last_number: int) -> Iterator[Kept]:
        assert known == through
        assert last_number == numbers
        assert notes(connection) == before, "the records are asked of a fold of the log"
        yield from NOTEBOOK.live(connection)
        for number in range(1, 4):
            event = AddedKept(note_id="7" + "Z" * 25, note=f"new {number}", number=numbers + number)
            yield Kept(known + number, 5, Origin("other", ""), event)

    outcome = opened.compact(records=records)
    assert outcome.kept == len(before) + 3
    assert notes(opened.connection) == [*before, *((through + number, f"new {number}") for number in (1, 2, 3))]
    answer = opened.commit(Add(("afterwards",)))[0]
    assert answer["sequence"] == through + 4
    assert answer["number"] == numbers + 4
    assert answer["note_id"] < "7" + "Z" * 25, "ids go on from the last that the store made, not from one brought in"


def test_a_batch_that_comes_while_records_are_brought_along_is_a_fault_of_ours() -> None:
    """Whoever brings records along has closed the store to writes."""
    opened = filled(6)

    def records(connection: apsw.Connection, through: int, last_number: int) -> Iterator[Kept]:
        opened.commit(Add(("meanwhile",)))
        yield Kept(through + 1, 5, ORIGIN, AddedKept(note_id="A", note="new"))

    with pytest.raises(AssertionError):
        opened.compact(records=records)
    assert opened.disk.names() == [NAME]
    assert opened.shelf.generations() == [1]


def other_domain() -> Domain:
    """A second domain, whose records stand between those of the first."""

    def live_of_other(connection: apsw.Connection) -> Iterator[Kept]:
        for sequence in (2, 3, 9):
            yield Kept(sequence, 0, ORIGIN, OtherKept(text=str(sequence)))

    return replace(NOTEBOOK, name="other", create="", deciders={}, appliers={OtherKept: apply}, live=live_of_other)


class OtherKept(AddedKept, frozen=True, kw_only=True, tag="other_kept"):
    note_id: str = ""
    note: str = ""
    text: str = ""


def apply(connection: apsw.Connection, event: Any, place: Place) -> None:
    raise AssertionError


def test_the_live_records_of_all_domains_come_by_rising_sequence() -> None:
    opened = open_store()
    for text in "abcd":
        opened.commit(Add((text,)))
    found = [(kept.sequence, type(kept.event)) for kept in live(opened.connection, [NOTEBOOK, other_domain()])]
    assert found == [
        *((1, AddedKept), (2, AddedKept), (2, OtherKept), (3, AddedKept), (3, OtherKept), (4, AddedKept)),
        (9, OtherKept),
    ]
